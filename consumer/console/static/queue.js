// An open page of the queue shows changes in place, without moving its rows.
{
  const news = document.querySelector("[data-changes]");
  const everyMs = Number(news?.dataset.everyMs);
  let timer = null;
  let isAsking = false;

  const show = (changes) => {
    document.title = changes.title;
    for (const fresh of changes.querySelectorAll("[data-live]")) {
      const shown = document.querySelector(`[data-live="${CSS.escape(fresh.dataset.live)}"]`);
      // Do not replace an element that has the focus.
      if (!shown || shown.innerHTML === fresh.innerHTML || shown.contains(document.activeElement)) continue;
      shown.innerHTML = fresh.innerHTML;
    }
  };

  const ask = async () => {
    timer = null;
    if (document.hidden) return;
    isAsking = true;
    const ids = [...document.querySelectorAll('[data-live^="flag-"]')].map((row) => row.dataset.live.slice(5));
    const address = [news.dataset.changes, ...ids.map((id) => `flag=${id}`)].join("&");
    // A server that does not answer now may answer next time.
    const answer = await fetch(address, { redirect: "manual" }).catch(() => null);
    if (answer?.type === "opaqueredirect" || answer?.status === 403) {
      news.textContent = news.dataset.ended;
      // Stop asking until the page is reloaded.
      return;
    }
    const text = answer?.ok ? await answer.text().catch(() => null) : null;
    if (text) show(new DOMParser().parseFromString(text, "text/html"));
    isAsking = false;
    timer = setTimeout(ask, everyMs);
  };

  if (news) {
    timer = setTimeout(ask, everyMs);
    // A hidden page asks only when it becomes visible again.
    document.addEventListener("visibilitychange", () => { if (!document.hidden && timer === null && !isAsking) ask(); });
  }
}
