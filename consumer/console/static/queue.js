// An open page of the queue learns what has changed, and says so in place: nothing that is read is moved.
{
  const news = document.querySelector("[data-changes]");
  const everyMs = Number(news?.dataset.everyMs);
  let timer = null;
  let isAsking = false;

  const show = (changes) => {
    document.title = changes.title;
    for (const fresh of changes.querySelectorAll("[data-live]")) {
      const shown = document.querySelector(`[data-live="${CSS.escape(fresh.dataset.live)}"]`);
      // What has the focus keeps it.
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
    // A server that is away now may answer the next time.
    const answer = await fetch(address, { redirect: "manual" }).catch(() => null);
    if (answer?.type === "opaqueredirect" || answer?.status === 403) {
      news.textContent = news.dataset.ended;
      // For good: the page has to be loaded again.
      return;
    }
    const text = answer?.ok ? await answer.text().catch(() => null) : null;
    if (text) show(new DOMParser().parseFromString(text, "text/html"));
    isAsking = false;
    timer = setTimeout(ask, everyMs);
  };

  if (news) {
    timer = setTimeout(ask, everyMs);
    // Nobody sees a hidden page; it asks once it is seen again.
    document.addEventListener("visibilitychange", () => { if (!document.hidden && timer === null && !isAsking) ask(); });
  }
}
