// Drafts: what was typed or chosen is kept in this tab until it was sent, whatever happens to the page.

const key = (field) => `draft ${field.dataset.draft}`;
const kept = {
  get: (name) => { try { return sessionStorage.getItem(name); } catch { return null; } },
  set: (name, value) => { try { value === null ? sessionStorage.removeItem(name) : sessionStorage.setItem(name, value); } catch { /* private mode */ } },
};
const fields = (at) => [...at.querySelectorAll("[data-draft]")];

// What the server wrote into a field; a list has no such value of its own.
function given(field) {
  if (!field.options) return field.defaultValue;
  const options = [...field.options];
  return (options.find((each) => each.defaultSelected) ?? options[0])?.value;
}

// A field that says what the server wrote into it has not been typed in here yet.
export function recall(at = document) {
  for (const field of fields(at)) {
    const value = kept.get(key(field));
    if (value === null || field.value !== given(field)) continue;
    if (!field.options || [...field.options].some((each) => each.value === value)) field.value = value;
  }
}
export function forget(at) {
  for (const field of fields(at)) kept.set(key(field), null);
}
export const isTyped = (at) => fields(at).some((field) => field.value !== given(field));
export const typedIn = (at) => fields(at).map((field) => field.value).filter((text) => text.trim()).join("\n");

// What editing began with (`data-draft-of` names the field) belongs to what was typed; where nothing was, none is kept.
function keep(field) {
  const typed = field.form?.elements[field.dataset.draftOf] ?? field;
  kept.set(key(field), typed.value === given(typed) ? null : field.value);
}

export function startDrafts() {
  recall();
  document.addEventListener("input", (event) => {
    const field = event.target.closest?.("[data-draft]");
    if (field) for (const each of field.form ? fields(field.form) : [field]) keep(each);
  });
  // Who takes what the file says by now gives up what was typed.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-forget]");
    if (link?.closest("form")) forget(link.closest("form"));
  });
  document.body.addEventListener("htmx:after:swap", () => recall());
}
