"""Small pictures of a document's first pages, or of a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jobs.steps import media, pdf_pages
from jobs.steps.kinds import ChildTask, Field, Hopeless, Made, Said, StepKind

_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP")
# A page of 1 x 10,000 must not become a picture of 640 x 6,400,000.
_LONGEST_SIDE_RATIO = 4
_MEGA = 1_000_000

KIND = StepKind(
    use="preview",
    release=1,
    target=f"{__name__}:run",
    media_types=(
        media.PDF, media.PNG, "image/jpeg", "image/gif", "image/webp", "image/tiff", "image/bmp",
    ),
    fields={
        "width": Field("number", default=640, least=16, most=4096),
        "pages": Field("number", default=1, least=1, most=100),
    },
)  # fmt: skip


def run(task: ChildTask) -> Said:
    """Draw the first pages, or the picture, no wider than asked for; no metadata is kept."""
    try:
        pictures = _pages(task) if task.media_type == media.PDF else _picture(task)
    except pdf_pages.UnreadableError as error:
        return Hopeless(reason=str(error))
    return pictures if isinstance(pictures, Hopeless) else tuple(pictures)


def _pages(task: ChildTask) -> list[Made] | Hopeless:
    made: list[Made] = []
    width = int(str(task.parameters["width"]))
    with pdf_pages.opened(task.input_path) as document:
        for number in range(min(len(document), int(str(task.parameters["pages"])))):
            page = document[number]
            page_width, page_height = page.get_size()
            if page_width <= 0 or page_height <= 0:
                return Hopeless(reason="page has no size")
            limit = width * _LONGEST_SIDE_RATIO
            # PDFium rounds up: a hair less keeps it from making one column more than asked for.
            scale = min((width - 0.01) / page_width, limit / page_height)
            bitmap = page.render(scale=scale, may_draw_forms=False)
            made.append(_save(bitmap.to_pil().convert("RGB"), task.folder, number))
            page.close()
    return made


def _picture(task: ChildTask) -> list[Made] | Hopeless:
    from PIL import Image, UnidentifiedImageError

    # Ours is decided from the header, before anything is unpacked, and is stricter than Pillow's.
    Image.MAX_IMAGE_PIXELS = None
    try:
        with Image.open(task.input_path, formats=_FORMATS) as image:
            if (pixels := image.width * image.height) > task.limits.pixels:
                return Hopeless(reason=_too_many(pixels, task.limits.pixels))
            return [_save(_upright(image, int(str(task.parameters["width"]))), task.folder, 0)]
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        return Hopeless(reason="damaged")


def _too_many(pixels: int, limit: int) -> str:
    return f"{-(-pixels // _MEGA)} megapixels, limit {limit // _MEGA}"


def _upright(image: Any, width: int) -> Any:
    from PIL import ImageOps

    # From 5 on, the tag says that the camera was held on its side.
    is_turned = image.getexif().get(0x0112, 1) >= 5
    side = width * _LONGEST_SIDE_RATIO
    box = (side, width) if is_turned else (width, side)
    image.draft("RGB" if image.mode != "CMYK" else "CMYK", box)
    if image.mode.startswith("I"):
        image = image.point(lambda value: value / 256).convert("L")
    elif image.mode == "P":
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    image.thumbnail(box, reducing_gap=2.0)
    return _plain(ImageOps.exif_transpose(image))


def _plain(image: Any) -> Any:
    """Only pixels: whatever came with them (place, camera, profile, text) stays behind."""
    from PIL import Image

    has_alpha = "A" in image.getbands()
    pixels = image.convert("RGBA" if has_alpha else "RGB")
    bare = Image.new(pixels.mode, pixels.size)
    bare.paste(pixels)
    return bare


def _save(picture: Any, folder: Path, number: int) -> Made:
    file = f"page-{number + 1}.png"
    picture.save(folder / file, format="PNG")
    return Made(file=file, media_type=media.PNG)
