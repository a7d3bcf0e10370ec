// The code is in the fragment, which browsers keep to themselves: it is in no request and no log.
(() => {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (!code) return;
  history.replaceState(null, "", "/auth");
  document.getElementById("code").value = code;
  document.getElementById("login").submit();
})();
