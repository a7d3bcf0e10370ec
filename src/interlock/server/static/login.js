// The code is in the fragment, which browsers keep to themselves: it is in no request and no log.
(() => {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (!code) {
    // Where on the page one wanted to go is known here alone.
    const target = document.getElementById("target");
    if (target.value) target.value += location.hash;
    return;
  }
  history.replaceState(null, "", "/auth");
  document.getElementById("code").value = code;
  document.getElementById("login").submit();
})();
