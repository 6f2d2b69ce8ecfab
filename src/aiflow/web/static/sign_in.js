// The one-time code comes behind the `#` of the address, which no server and no preview ever sees. It is posted once.
const form = document.getElementById("sign-in");
const code = new URLSearchParams(location.hash.slice(1)).get("code");
if (code) {
  history.replaceState(null, "", "/sign-in");
  form.elements.code.value = code;
  form.elements.name.focus();
} else form.elements.code.focus();
