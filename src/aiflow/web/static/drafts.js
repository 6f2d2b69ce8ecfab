// Drafts: what was typed is kept in this tab until it was sent, whatever happens to the page.

const key = (field) => `draft ${field.dataset.draft}`;
const kept = {
  get: (name) => { try { return sessionStorage.getItem(name); } catch { return null; } },
  set: (name, value) => { try { value ? sessionStorage.setItem(name, value) : sessionStorage.removeItem(name); } catch { /* private mode */ } },
};
const fields = (at) => [...at.querySelectorAll("[data-draft]")];

// A field that says what the server wrote into it has not been typed in here yet.
export function recall(at = document) {
  for (const field of fields(at)) if (field.value === field.defaultValue) field.value = kept.get(key(field)) ?? field.value;
}
export function forget(at) {
  for (const field of fields(at)) kept.set(key(field), "");
}
export const typedIn = (at) => fields(at).map((field) => field.value).filter((text) => text.trim()).join("\n");

export function startDrafts() {
  recall();
  document.addEventListener("input", (event) => {
    const field = event.target.closest?.("[data-draft]");
    // All of its form: the text that editing began with belongs to what was typed.
    if (field) for (const each of field.form ? fields(field.form) : [field]) kept.set(key(each), each.value);
  });
  document.body.addEventListener("htmx:after:swap", () => recall());
}
