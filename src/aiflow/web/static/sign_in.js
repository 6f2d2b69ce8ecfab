// The one-time code comes behind the `#` of the address, which no server and no preview ever sees. It is posted once.
const form = document.getElementById("sign-in");

function takeCode() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (!code) return false;
  history.replaceState(null, "", "/sign-in");
  form.elements.code.value = code;
  form.elements.name.focus();
  return true;
}
if (!takeCode()) form.elements.code.focus();
addEventListener("hashchange", takeCode); // a link that is opened where this page is shown already
