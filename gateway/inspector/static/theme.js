// Runs before the page is drawn, so that it never flashes in the other theme.
(() => {
  const chosen = localStorage.getItem("moorage.theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
})();
