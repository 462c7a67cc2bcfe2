/* What a word means, beside the word: when it is pointed at or reached with the keyboard. Without this script, and by a
   touch, the word leads to the glossary. */
"use strict";

(() => {
  const ID = "glossary-tip";
  let shown = null;

  function hide() {
    shown?.removeAttribute("aria-describedby");
    document.getElementById(ID)?.remove();
    shown = null;
  }

  function show(word) {
    if (word === shown) return;
    hide();
    shown = word;
    const tip = document.createElement("div");
    tip.id = ID;
    tip.className = "glossary-tip";
    tip.setAttribute("role", "tooltip");
    tip.textContent = word.dataset.says;
    document.body.append(tip);
    word.setAttribute("aria-describedby", ID);
    const [at, size] = [word.getBoundingClientRect(), tip.getBoundingClientRect()];
    const left = Math.max(8, Math.min(at.left, document.documentElement.clientWidth - size.width - 8));
    const above = at.top > size.height + 70; // the header stays in view
    tip.style.left = `${left + scrollX}px`;
    tip.style.top = `${scrollY + (above ? at.top - size.height - 6 : at.bottom + 6)}px`;
    tip.addEventListener("pointerleave", hide);
  }

  const word = (event) => event.target.closest?.("a.term");
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    const over = word(event);
    if (over) show(over);
    else if (shown && !event.target.closest?.(`#${ID}`) && document.activeElement !== shown) hide();
  });
  document.addEventListener("focusin", (event) => (word(event) ? show(word(event)) : hide()));
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
})();
