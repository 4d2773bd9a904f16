// Pages work without this script.

// A second click does not send a form again.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
});

// People may return to a page that the browser kept.
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

// On narrow screens, lines of links scroll: show the current one.
for (const here of document.querySelectorAll(".scrolls [aria-current]")) {
  const line = here.closest(".scrolls");
  line.scrollLeft = here.offsetLeft - (line.clientWidth - here.offsetWidth) / 2;
}
