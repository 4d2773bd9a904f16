// Pages are whole without this.

// A form that is on its way is not sent again by a second click.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
});

// Somebody may come back to a page that the browser kept.
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

// On a narrow screen lines of links scroll: show where one is.
for (const here of document.querySelectorAll(".scrolls [aria-current]")) {
  const line = here.closest(".scrolls");
  line.scrollLeft = here.offsetLeft - (line.clientWidth - here.offsetWidth) / 2;
}
