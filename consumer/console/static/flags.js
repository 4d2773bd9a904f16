// Single keys: each does what a click on the element with the same data-key does. Lists are walked with J and K.
{
  const STORAGE_KEY = "dupwatch-keys-off";
  const isOff = () => { try { return localStorage.getItem(STORAGE_KEY) === "yes"; } catch { return false; } };
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
    try { localStorage.setItem(STORAGE_KEY, toggle.checked ? "no" : "yes"); } catch { /* Applies to this page only. */ }
    show();
  });

  // The link of the row in which any element has the focus.
  const itemHere = () => document.activeElement.closest("li")?.querySelector("[data-item]");

  const walk = (step) => {
    const items = [...document.querySelectorAll("[data-item]")];
    if (!items.length) return false;
    const here = items.indexOf(itemHere());
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
    if (key === "x") {
      const pick = document.activeElement.closest("li")?.querySelector(".pick");
      pick?.click();
      return Boolean(pick);
    }
    const element = elementOf(key);
    // Hidden elements do nothing: without a selection there is no decision about several flags.
    if (!element?.getClientRects().length) return false;
    if (element.matches("input")) element.focus();
    else element.click();
    return true;
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing || isOff()) return;
    if (event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
    if (event.key.length === 1 && press(event.key.toLowerCase())) event.preventDefault();
  });

  // A list with the focus takes the next key as the first letter of a choice, so it loses the focus after a choice.
  // If the keyboard is used to choose, the list keeps the focus until Enter or Escape.
  for (const list of document.querySelectorAll("select#reason")) {
    let walks = false;
    list.addEventListener("pointerdown", () => { walks = false; });
    list.addEventListener("keydown", (event) => {
      const ends = event.key === "Enter" || event.key === "Escape";
      if (ends && walks) setTimeout(() => list.blur());
      walks = !ends && event.key !== "Tab";
    });
    list.addEventListener("change", () => { if (!walks) list.blur(); });
  }

  show();

  // The undo button counts down its seconds.
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

// Flags of the queue are selected one by one, as a range with shift, or all; the decision bar shows how many.
{
  const picks = () => [...document.querySelectorAll(".pick")];
  const all = document.getElementById("select-all");
  let last = null;

  const show = () => {
    const form = document.getElementById("selection");
    if (!form) return;
    const selected = document.querySelectorAll(".pick:checked").length;
    const count = document.getElementById("selected");
    count.textContent = count.dataset.said.replace("#", selected);
    if (!all) return;
    all.checked = selected > 0 && selected >= Number(form.dataset.most);
    all.indeterminate = selected > 0 && !all.checked;
  };

  document.addEventListener("click", (event) => {
    const pick = event.target.closest(".pick");
    if (!pick) return;
    const rows = picks();
    const [from, to] = [rows.indexOf(last), rows.indexOf(pick)].sort((a, b) => a - b);
    if (event.shiftKey && from >= 0) for (const each of rows.slice(from, to)) each.checked = pick.checked;
    last = pick;
    show();
  });

  all?.addEventListener("change", () => {
    const most = Number(document.getElementById("selection").dataset.most);
    picks().forEach((pick, place) => { pick.checked = all.checked && place < most; });
    show();
  });

  addEventListener("pageshow", show);
  if (all) all.closest("p").hidden = false;
}

// A flag is given back when its page is closed, instead of when its claim expires.
{
  const leave = document.querySelector("[data-leave]");
  const token = document.querySelector("input[name=token]")?.value ?? "";
  let stays = false;

  // Links to parts of the flag and to its texts do not leave it.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || link.target) return;
    const isElsewhere = link.pathname !== location.pathname || link.search !== location.search;
    stays = isElsewhere && link.origin === location.origin && `${link.pathname}/`.startsWith(`${location.pathname}/`);
  });

  // This also fires when the page is reloaded; the new opening is later and is kept.
  addEventListener("pagehide", () => {
    if (!leave || stays) return;
    const form = new URLSearchParams({ token, opened_ms: leave.dataset.leave });
    navigator.sendBeacon(new URL(leave.href).pathname, form);
  });

  // If the browser shows a kept page again, requesting it opens the flag again.
  addEventListener("pageshow", async (event) => {
    stays = false;
    if (!leave || !event.persisted) return;
    try {
      const answer = await fetch(location.href, { redirect: "manual" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      leave.dataset.leave = page.querySelector("[data-leave]")?.dataset.leave ?? leave.dataset.leave;
    } catch { /* The page remains open, but the flag is free for others. */ }
  });
}
