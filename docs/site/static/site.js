// What the theme lacks: a button that copies a block of code, and what keyboards and screen readers need.
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.highlight")) {
    const button = document.createElement("button");
    button.className = "copy";
    button.type = "button";
    button.textContent = "Copy";
    const code = block.querySelector("pre");
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(code.innerText);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    block.append(button);
  }
  for (const each of document.querySelectorAll(".highlight pre, .table-wrapper, .diagram")) {
    if (each.scrollWidth > each.clientWidth) each.tabIndex = 0;
  }
  for (const each of document.querySelectorAll(".caption[role=heading]")) each.ariaLevel = "2";
  for (const each of document.querySelectorAll(".sig dl, .sig dd")) each.role = "presentation";
});
