// Drafts: what was typed is kept in this tab until it was sent, whatever happens to the page.

const key = (field) => `draft ${field.dataset.draft}`;
const kept = {
  get: (name) => { try { return sessionStorage.getItem(name); } catch { return null; } },
  set: (name, value) => { try { value ? sessionStorage.setItem(name, value) : sessionStorage.removeItem(name); } catch { /* private mode */ } },
};
const fields = (at) => [...at.querySelectorAll("[data-draft]")];

export function recall(at = document) {
  for (const field of fields(at)) if (!field.value) field.value = kept.get(key(field)) ?? "";
}
export function forget(at) {
  for (const field of fields(at)) kept.set(key(field), "");
}
export const typedIn = (at) => fields(at).map((field) => field.value).filter((text) => text.trim()).join("\n");

export function startDrafts() {
  recall();
  document.addEventListener("input", (event) => {
    const field = event.target.closest?.("[data-draft]");
    if (field) kept.set(key(field), field.value);
  });
  document.body.addEventListener("htmx:after:swap", () => recall());
}
