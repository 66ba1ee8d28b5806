"""``completion``: what a shell needs to complete commands and options, without asking us again."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import typer


class Shell(StrEnum):
    """The shells that are known."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def completion(context: typer.Context, shell: Shell) -> None:
    """Print what completes commands and options in a shell: bash, zsh or fish.

    bash: eval "$(laufzettel completion bash)" in ~/.bashrc; zsh: the same with zsh in ~/.zshrc;
    fish: laufzettel completion fish > ~/.config/fish/completions/laufzettel.fish
    """
    # Words in the script itself: starting Python at each press of a key would be felt.
    commands = dict(_commands(context.find_root().command))
    match shell:
        case Shell.bash:
            print(_bash(commands))
        case Shell.zsh:
            print("autoload -U +X bashcompinit && bashcompinit\n" + _bash(commands))
        case Shell.fish:
            print("\n".join(_fish(commands)))


def _commands(root: Any) -> Iterator[tuple[str, Any]]:
    """All commands by their words, those inside a command as well; the root is ""."""
    yield "", root
    for name, command in root.commands.items():
        yield name, command
        for inner, part in getattr(command, "commands", {}).items():
            yield f"{name} {inner}", part


def _words(command: Any) -> list[str]:
    options = [o for p in command.params for o in p.opts if o.startswith("--")]
    return [*getattr(command, "commands", {}), *options, "--help"]


def _bash(commands: dict[str, Any]) -> str:
    cases = "\n".join(
        f'        "{name}") words="{" ".join(_words(command))}" ;;'
        for name, command in commands.items()
    )
    several = " ".join(name for name, command in commands.items() if _is_several(name, command))
    return f"""_laufzettel() {{
    local word words before="" told="" here="${{COMP_WORDS[COMP_CWORD]}}"
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$before" in -c|--config|--url) before=""; continue ;; esac
        before="$word"
        case "$word" in -*) continue ;; esac
        case " {several} " in *" $told "*) told="$told $word"; break ;; esac
        if [ -z "$told" ]; then told="$word"; fi
    done
    case "$told" in
{cases}
        *) words="" ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$here"))
}}
complete -o default -F _laufzettel laufzettel"""


def _is_several(name: str, command: Any) -> bool:
    return bool(name) and bool(getattr(command, "commands", {}))


def _fish(commands: dict[str, Any]) -> Iterator[str]:
    for name, command in commands.items():
        words = name.split()
        when = " and ".join(f"__fish_seen_subcommand_from {w}" for w in words)
        when = when.replace(" and ", "; and ") or "__fish_use_subcommand"
        for inner, part in getattr(command, "commands", {}).items():
            yield f"complete -c laufzettel -f -n '{when}' -a {inner} -d '{_short(part)}'"
        for option in command.params:
            for told in (o for o in option.opts if o.startswith("--")):
                takes = "" if getattr(option, "is_flag", False) else " -r"
                yield f"complete -c laufzettel -n '{when}' -l {told[2:]}{takes}"


def _short(command: Any) -> str:
    first = (command.help or command.callback.__doc__ or "").strip().partition("\n")[0]
    return first.replace("'", "\\'")
