async ([base, socket, subprotocol]) => {
  const reached = [];
  for (const mode of ["cors", "no-cors"])
    for (const method of ["GET", "POST"]) {
      const answer = await fetch(base, { mode, method, body: method === "POST" ? "x" : undefined }).catch(() => null);
      if (answer && answer.ok) reached.push(`${mode} ${method} ${answer.status}`);
    }
  const opened = await new Promise(done => {
    const tried = new WebSocket(socket, [subprotocol]);
    tried.onopen = () => done(true);
    tried.onclose = () => done(false);
  });
  if (opened) reached.push("WebSocket");
  const frame = document.createElement("iframe");
  frame.name = "target";
  document.body.append(frame);
  const form = document.createElement("form");
  Object.assign(form, { method: "post", action: base, target: "target" });
  document.body.append(form);
  form.submit();
  await new Promise(done => setTimeout(done, 500));
  try { if (frame.contentDocument?.body.innerText) reached.push("frame"); } catch (error) {}
  return reached;
}