// Pages work without this; it shows times in the reader's zone and keeps an open page fresh.

const form = new Intl.DateTimeFormat(document.documentElement.lang, {
  dateStyle: "medium", timeStyle: "medium",
});

function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.getTime())) time.textContent = form.format(at);
  }
}

// Whoever is filling in a form is not disturbed.
function isBusy(live) {
  const active = document.activeElement;
  const isTyping = active && live.contains(active) && active.matches("input, select, textarea");
  return isTyping || live.querySelector("details.order[open]") !== null;
}

async function refresh(live) {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (answer.status === 401) {
    location.reload();
    return;
  }
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const news = page.getElementById("live");
  if (!news || isBusy(live)) return;
  localTimes(news);
  // What the reader has opened or closed stays so, and the focus stays where it was.
  for (const part of live.querySelectorAll("details[id]")) {
    const same = news.querySelector(`#${CSS.escape(part.id)}`);
    if (same) same.open = part.open;
  }
  const at = [...live.querySelectorAll("a, button, summary, [tabindex]")].indexOf(document.activeElement);
  live.replaceChildren(...[...news.childNodes].map((node) => document.importNode(node, true)));
  if (at >= 0) live.querySelectorAll("a, button, summary, [tabindex]")[at]?.focus({ preventScroll: true });
}

function follow(live, line) {
  const source = new EventSource(document.body.dataset.live);
  const say = (word) => {
    line.className = word;
    if (line.textContent !== line.dataset[word]) line.textContent = line.dataset[word];
  };
  let at = Number(document.body.dataset.at);
  let waiting = 0;
  const look = () => {
    if (waiting) return;
    waiting = setTimeout(async () => {
      waiting = 0;
      if (isBusy(live)) {
        say("held");
        return;
      }
      await refresh(live).catch(() => say("off"));
      if (line.className !== "off") say("on");
    }, 600);
  };
  source.addEventListener("moved", (event) => {
    if (Number(event.data) <= at) return;
    at = Number(event.data);
    look();
  });
  source.addEventListener("working", look);
  source.addEventListener("open", () => say("on"));
  source.addEventListener("error", () => say("off"));
}

localTimes(document);
const live = document.getElementById("live");
const line = document.getElementById("line");
if (live && line && document.body.dataset.live && !live.dataset.still) follow(live, line);

// A form that is under way is not sent twice.
document.addEventListener("submit", (event) => {
  const button = event.target.querySelector("button");
  if (event.target.method === "post" && button) setTimeout(() => { button.disabled = true; }, 0);
});
