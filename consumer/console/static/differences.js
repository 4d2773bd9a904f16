// Step through the differences of two texts from top to bottom, then start again.
{
  const SAME_LINE_PX = 24;
  const link = document.querySelector("[data-next-difference]");
  let last = -Infinity;

  const topOf = (mark) => mark.getBoundingClientRect().top + scrollY;

  link?.addEventListener("click", (event) => {
    event.preventDefault();
    const marks = [...document.querySelectorAll(".pair ins, .pair del, .pair .moved")].sort((a, b) => topOf(a) - topOf(b));
    // Differences side by side in two columns count as one.
    const next = marks.find((mark) => topOf(mark) > last + SAME_LINE_PX) ?? marks[0];
    last = topOf(next);
    next.tabIndex = -1;
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "center" });
  });
}
