// Single keys: each does what a click on the element with the same data-key does. Lists are walked with J and K.
{
  const KEPT = "dupwatch-keys-off";
  const isOff = () => { try { return localStorage.getItem(KEPT) === "yes"; } catch { return false; } };
  const FURTHER = { n: 'a.further[rel="next"]', p: 'a.further[rel="prev"]' };
  const elementOf = (key) =>
    document.querySelector(`[data-key="${CSS.escape(key)}"]`) ?? (FURTHER[key] && document.querySelector(FURTHER[key]));
  const keys = document.getElementById("keys");
  const toggle = document.getElementById("keys-on");

  const show = () => {
    if (keys) keys.hidden = false;
    if (toggle) toggle.checked = !isOff();
    for (const element of document.querySelectorAll("[data-key]")) {
      if (isOff()) element.removeAttribute("aria-keyshortcuts");
      else element.setAttribute("aria-keyshortcuts", element.dataset.key.toUpperCase());
    }
    for (const button of document.querySelectorAll("button[data-key], .button[data-key]")) {
      button.querySelector("kbd")?.remove();
      if (isOff()) continue;
      const hint = document.createElement("kbd");
      hint.textContent = button.dataset.key.toUpperCase();
      hint.setAttribute("aria-hidden", "true");
      button.append(hint);
    }
  };

  toggle?.addEventListener("change", () => {
    try { localStorage.setItem(KEPT, toggle.checked ? "no" : "yes"); } catch { /* It holds for this page only. */ }
    show();
  });

  const walk = (step) => {
    const items = [...document.querySelectorAll("[data-item]")];
    if (!items.length) return false;
    const here = items.indexOf(document.activeElement);
    const next = here < 0 ? (step > 0 ? 0 : items.length - 1) : Math.min(Math.max(here + step, 0), items.length - 1);
    items[next].focus();
    return true;
  };

  const help = () => {
    if (!keys) return false;
    keys.open = !keys.open;
    keys.querySelector("summary").focus();
    return true;
  };

  const press = (key) => {
    if (key === "?") return help();
    if (key === "j") return walk(1) || press("n");
    if (key === "k") return walk(-1) || press("p");
    const element = elementOf(key);
    element?.click();
    return Boolean(element);
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing || isOff()) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    if (event.key.length === 1 && press(event.key.toLowerCase())) event.preventDefault();
  });

  show();

  // What can be undone for some seconds says how many are left.
  for (const button of document.querySelectorAll("button[data-left-ms]")) {
    const end = performance.now() + Number(button.dataset.leftMs);
    const left = document.createElement("span");
    left.setAttribute("aria-hidden", "true");
    button.append(left);
    const tick = () => {
      const seconds = Math.ceil((end - performance.now()) / 1000);
      if (seconds > 0) {
        left.textContent = ` ${seconds} s`;
        setTimeout(tick, 250);
        return;
      }
      const final = document.createElement("b");
      final.textContent = button.dataset.final;
      button.closest("form").replaceWith(final);
    };
    tick();
  }
}
