/* The page Try: sends the prompt, shows the answer as it arrives, then the request's cost and timeline. */

const form = document.getElementById("try");
const [status, answer, text, raw, row, curl, stop] = ["status", "answer", "text", "raw", "row", "curl", "stop"].map(
  (name) => document.getElementById(`try-${name}`),
);
const thinking = document.getElementById("try-thinking");
const send = form.querySelector("[type=submit]");
send.textContent = send.dataset.named;
for (const part of document.querySelectorAll("[data-with-script]")) part.hidden = false;

/** Characters of the stream that are shown; a long answer would make the page slow. */
const maxRaw = 200_000;
let running;

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (!running) void run(new URLSearchParams(new FormData(form)));
});
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});
stop.addEventListener("click", () => running?.abort());

async function run(body) {
  running = new AbortController();
  send.disabled = true;
  stop.hidden = answer.hidden = false;
  thinking.hidden = true;
  for (const place of [text, raw, thinking.querySelector("pre")]) place.textContent = "";
  row.replaceChildren();
  say("Waiting for the answer …");
  const began = performance.now();
  const seconds = () => ((performance.now() - began) / 1000).toFixed(1);
  let response;
  try {
    void showCurl(body);
    response = await fetch(form.dataset.send, { method: "POST", body, signal: running.signal });
    const isStream = response.ok && response.body;
    const fault = isStream ? await showStream(response) : readError(await response.text());
    say(fault ? `Failed after ${seconds()} s: ${fault}` : `Done after ${seconds()} s.`, fault);
    // Where nothing came, an empty box would look like an answer.
    answer.hidden = !isStream;
  } catch (thrown) {
    if (running.signal.aborted) say(`Stopped after ${seconds()} s.`);
    else say(`The connection to dragoman broke after ${seconds()} s: ${thrown.message}`, thrown);
    answer.hidden = response === undefined;
  }
  running = undefined;
  send.disabled = false;
  stop.hidden = true;
  await showRow(response?.headers.get("x-request-id"));
}

/** @param fault What went wrong, if anything did. */
function say(sentence, fault) {
  status.className = fault ? "note bad" : "soft";
  status.replaceChildren(
    ...sentence.split("`").map((part, at) => {
      if (at % 2 === 0) return part;
      const code = document.createElement("code");
      code.textContent = part;
      return code;
    }),
  );
}

/** @returns What went wrong in the stream, if anything did. */
async function showStream(response) {
  const chosen = form.elements.dialect.selectedOptions[0];
  const places = JSON.parse(chosen.dataset.texts);
  let fault;
  let rest = "";
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    if (raw.textContent.length < maxRaw) raw.append(piece);
    rest += piece;
    const lines = rest.split("\n");
    rest = lines.pop();
    for (const line of lines) fault = readLine(line, places) ?? fault;
  }
  return fault ?? readLine(rest, places);
}

function readLine(line, places) {
  const [, data] = /^data: ?(\{.*)$/.exec(line) ?? [];
  if (data === undefined) return undefined;
  const event = JSON.parse(data);
  for (const { kind, path, when } of places) {
    if (when && !valuesAt(event, when[0]).includes(when[1])) continue;
    for (const value of valuesAt(event, path)) if (typeof value === "string") show(kind, value);
  }
  return event.error ? readError(data) : undefined;
}

function show(kind, value) {
  say("Answering …");
  if (kind === "text") return text.append(value);
  thinking.hidden = false;
  thinking.querySelector("pre").append(value);
}

/** `*` stands for every item of a list. */
const valuesAt = (value, path) =>
  path
    .split(".")
    .reduce(
      (found, name) => found.flatMap((each) => (name === "*" ? (Array.isArray(each) ? each : []) : [each?.[name]])),
      [value],
    );

/** Every dialect has its message there. */
function readError(body) {
  try {
    return JSON.parse(body).error.message;
  } catch {
    return body.startsWith("<") ? "dragoman refused the form. Reload the page." : body.slice(0, 300);
  }
}

async function showCurl(body) {
  const page = await load(form.action, { method: "POST", body });
  const made = page?.getElementById("curl-text");
  if (!made) return;
  document.getElementById("curl-text").textContent = made.textContent;
  curl.hidden = false;
}

/** The cost and the timeline are those of the request's own page. The row is there when the answer has ended. */
async function showRow(id) {
  if (!id) return;
  const address = `/admin/requests/${encodeURIComponent(id)}`;
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const page = await load(address);
    const usage = page?.getElementById("usage");
    if (usage) {
      const link = document.createElement("a");
      link.href = address;
      link.textContent = "All about this request";
      const columns = document.createElement("div");
      columns.className = "columns";
      columns.append(page.getElementById("timeline").closest("section"), usage.closest("section"));
      return row.replaceChildren(columns, link);
    }
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

async function load(address, options) {
  const response = await fetch(address, options).catch(() => undefined);
  return response?.ok ? new DOMParser().parseFromString(await response.text(), "text/html") : undefined;
}
