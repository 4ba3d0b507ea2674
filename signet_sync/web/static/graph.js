// Says what the mark under the pointer or the focus is: a browser shows a title late, and to the keyboard never.

const detail = document.createElement("p");
detail.className = "detail";
detail.hidden = true;
detail.setAttribute("aria-hidden", "true"); // the mark's own name says the same
document.body.append(detail);

const tell = (event) => {
  const mark = event.target instanceof Element ? event.target.closest(".mark") : null;
  detail.hidden = mark === null;
  if (mark) detail.textContent = mark.getAttribute("aria-label");
};

for (const kind of ["pointerover", "focusin"]) document.addEventListener(kind, tell);
const hush = () => { detail.hidden = true; };
for (const kind of ["focusout", "swapped"]) document.addEventListener(kind, hush);
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hush(); });
