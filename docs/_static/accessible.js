// What the theme leaves unsaid to screen readers and keyboards.
document.addEventListener("DOMContentLoaded", () => {
  const all = (what, name, value) =>
    document.querySelectorAll(what).forEach((found) => found.setAttribute(name, value));
  all('p.caption[role="heading"]', "aria-level", "2");
  all("aside.sidebar-drawer", "aria-label", "Pages");
  all("aside.toc-drawer", "aria-label", "On this page");
  all("article pre, article .table-wrapper", "tabindex", "0");
});
