/**
 * Scenario: what the pages tell is so: which key sent a request, what a removal did, and what has changed since the
 * page was loaded.
 */
import { expect, test } from "bun:test";
import type { Entry } from "../../src/books/history/history";
import { formTokenIn } from "../support/form-fields";
import { entry } from "../support/history-rows";
import { type RunningProxy, startProxy } from "../support/proxy";

const textOf = (page: string) =>
  page
    .replace(/<(style|script)[\s\S]*?<\/\1>/g, "")
    .replace(/<[^>]+>/g, " ")
    .replace(/\s+/g, " ");
const keys = [
  { name: "laptop", key: "k-of-the-laptop-0001" },
  { name: "phone", key: "k-of-the-phone-0001" },
];

/** A proxy with these rows, a second old, and its pages. */
async function having(...rows: Partial<Entry>[]) {
  const proxy = await startProxy();
  const add = (...more: Partial<Entry>[]) => {
    for (const row of more) proxy.app.history.add(entry({ started_at_ms: Date.now() - 1_000, ...row }));
    proxy.history.flush();
  };
  const page = async (path = "") => (await fetch(`${proxy.url}/admin${path}`)).text();
  add(...rows);
  return { ...proxy, add, page, words: async (path?: string) => textOf(await page(path)) };
}

const ask = async (proxy: RunningProxy, key?: string) => {
  const body = { model: "gpt-5-mini", messages: [{ role: "user", content: "Hi" }] };
  const answer = await proxy.post(
    "/v1/chat/completions",
    body,
    key === undefined ? {} : { headers: { "x-api-key": key } },
  );
  await answer.text();
  proxy.app.history.flush();
  return answer.headers.get("x-request-id")!;
};

test("the key of a request is on every page that shows requests, and leads to its requests", async () => {
  await using proxy = await startProxy({ config: { auth: { apiKeys: keys } } });
  const id = await ask(proxy, keys[0]!.key);
  const page = async (path: string) => (await fetch(`${proxy.url}/admin${path}`)).text();
  const link = 'href="/admin/requests?key_name=laptop"';
  const requests = await page("/requests");
  expect(requests).toContain(link);
  expect(textOf(requests)).toMatch(/Time Model Client Key Account Result/);
  expect(requests).toContain('name="key_name"');
  expect(textOf(await page("/requests?key_name=phone"))).toContain("No request in the history matches");
  expect(await page(`/requests/${id}`)).toContain(link);
  const overview = textOf(await page(""));
  expect(overview).toMatch(/Usage by key, last 7 days .* laptop 1 /);
  const [row] = /laptop[\s\S]*?<\/tr>/.exec(await page("/keys"))!;
  expect(row).toMatch(/href="\/admin\/requests\?key_name=laptop&amp;from_ms=\d+">1 request</);
  expect(textOf(row)).toMatch(/1 request · \S+ (?:cr|pr)/);
});

test("Connect makes a key for a tool and shows it this once, where keys are needed", async () => {
  await using proxy = await startProxy({ config: { auth: { apiKeys: keys } } });
  const shown = await (await fetch(`${proxy.url}/admin/connect`)).text();
  expect(textOf(shown)).toContain("Create a key for Codex");
  for (const name of ["codex", "codex-2"]) {
    const body = new URLSearchParams({ form_token: formTokenIn(shown), tool: "codex" });
    const made = await (await fetch(`${proxy.url}/admin/connect`, { method: "POST", body })).text();
    expect(textOf(made)).toContain(`The key “${name}” was created`);
    const [guide] = /<details[^>]* id="guide-codex" open>[\s\S]*?<\/pre>/.exec(made)!;
    expect(guide).not.toContain("YOUR_CLIENT_KEY");
    await ask(proxy, /drg_[\w-]{43}/.exec(guide)![0]);
    expect(proxy.rows().map(({ key_name }) => key_name)).toContain(name);
  }
  await using open = await startProxy();
  expect(await (await fetch(`${open.url}/admin/connect`)).text()).not.toContain("Create a key for");
});

test("clients are called as people call them, and the versions of one tool share a row of the overview", async () => {
  const clients = ["claude-cli/2.1.330", "claude-cli/2.1.330", "claude-cli/2.1.329", "my-script"];
  await using own = await having(...clients.map((client_name) => ({ client_name })));
  const requests = await own.words("/requests");
  expect(requests).toContain("Claude Code 2.1.330");
  expect(requests).toContain("my-script");
  const overview = await own.page();
  expect(textOf(overview)).toMatch(/Claude Code 2\.1\.330 , 2\.1\.329 3 /);
  expect(overview).toMatch(/from_ms=\d+&amp;client_name=claude-cli%2F2\.1\.329">2\.1\.329</);
});

test("a list shows 25 rows first, and the project of a request where there is one, with a link to its requests", async () => {
  const rows = Array.from({ length: 30 }, (_, at) => ({
    request_id: `of-${at}`,
    prompt: `p-${at}`,
    project: "web-shop",
  }));
  await using own = await having(...rows);
  const { page } = own;
  const requests = await page("/requests");
  expect(textOf(requests)).toMatch(/Time Model Client Project Account Result/);
  const link = 'href="/admin/requests?project=web-shop"';
  expect(requests).toContain(link);
  expect(await page("/requests/of-1")).toContain(link);
  for (const list of [requests, await page("/prompts")]) {
    expect(list.match(/<th scope="row"/g)).toHaveLength(25);
    const [, older] = /href="([^"]+)" rel="next"/.exec(list) ?? [];
    expect((await page(older!.replaceAll("&amp;", "&").slice(6))).match(/<th scope="row"/g)).toHaveLength(5);
  }
  expect((await page("/requests?limit=100")).match(/<th scope="row"/g)).toHaveLength(30);
});

test("the version of Gemini CLI is shown without the model that it names after it", async () => {
  await using own = await having({ client_name: "GeminiCLI-tui/0.61.0/gemini-3.8-flash" });
  for (const path of ["", "/requests"]) expect(await own.words(path)).toMatch(/Gemini CLI 0\.61\.0 (?!\/)/);
});

test("a request that a person stopped is no failure that needs attention, and is shown as none", async () => {
  const stopped = { http_status: 499, error_type: "client_closed" };
  await using own = await having(...Array<Partial<Entry>>(5).fill(stopped));
  expect(await own.words()).not.toContain("failed in the last hour");
  own.add(...Array<Partial<Entry>>(5).fill({ http_status: 502, error_type: "upstream" }));
  expect(await own.words()).toContain("5 of 10 requests failed in the last hour");
  own.add({ ...stopped, request_id: "left", session: "0123456789ab", prompt: "p1" });
  const left = await own.page("/requests/left");
  expect(left).toContain('class="note idle"');
  expect(left).not.toContain(`<li class="bad">`);
  expect(left).toContain('href="/admin/requests?session=0123456789ab"');
  expect(left).toContain('href="/admin/prompts/p1"');
});

test("two programs of one tool share a row of the page Cache", async () => {
  const programs = ["codex_cli_rs/0.169.0", "codex_exec/0.169.0"];
  const rows = programs.map((client_name) => ({ client_name, input_tokens: 1_000, cached_tokens: 250 }));
  await using own = await having(...rows);
  expect(await own.words("/cache")).toMatch(/By client .*Codex 2 2,000 25% /);
});

test("a request leads to those before and after it, and one that failed says what to do", async () => {
  const at = Date.now() - 9_000;
  const nothing = { input_tokens: 0, output_tokens: 0, cost: 0 };
  await using own = await having(
    { request_id: "req_first", started_at_ms: at },
    { request_id: "req_second", started_at_ms: at + 1, error_type: "overloaded_error", http_status: 529, ...nothing },
    { request_id: "req_third", started_at_ms: at + 2 },
  );
  const second = await own.page("/requests/req_second");
  expect(second).toMatch(/href="\/admin\/requests\/req_first" rel="prev"/);
  expect(second).toMatch(/href="\/admin\/requests\/req_third" rel="next"/);
  expect(second).toContain("The model's host has too much to do.");
  expect(textOf(second)).toMatch(/Input 0 .*Cached input 0 /);
  expect(await own.page("/requests/req_first")).not.toContain('rel="prev"');
  expect(await own.page("/requests/req_third")).not.toContain('rel="next"');
});

test("a preset fills in the form of a new budget", async () => {
  await using own = await having();
  const [, preset] = /<a class="button" href="\/admin([^"#]+)#f-name">Stop at \$5 a day/.exec(
    await own.page("/budgets"),
  )!;
  const filled = await own.page(preset!.replaceAll("&amp;", "&"));
  expect(filled).toMatch(/name="limit"[^>]* value="500"/);
  expect(filled).toMatch(/<option value="day" selected>/);
});

test("without keys there is no column and no filter for them", async () => {
  await using own = await having({});
  const page = await own.page("/requests");
  // What says that there are new ones stands where they would appear.
  expect(page.indexOf('class="fresh"')).toBeGreaterThan(0);
  expect(page.indexOf('class="fresh"')).toBeLessThan(page.indexOf('id="live"'));
  expect(textOf(page)).toMatch(/Time Model Client Account Result/);
  expect(page).not.toContain('name="key_name"');
});

test("a change of the model's name is told with both names, and as none in the list where the names are equal", async () => {
  const named = { upstream_model: "gpt-5-mini", fixups: '["model-name"]' };
  const asked = ["gpt-5-mini", "GPT-5-Mini"];
  await using own = await having(...asked.map((name) => ({ ...named, request_id: name, client_model: name })));
  expect(await own.words("/requests/gpt-5-mini")).toContain(
    "The upstream named the model otherwise in its answer; the response has gpt-5-mini, as it was requested.",
  );
  expect(await own.words("/requests/GPT-5-Mini")).toContain("requested as GPT-5-Mini, and sent as gpt-5-mini;");
  expect((await own.words("/requests")).match(/1 change/g)).toHaveLength(1);
});

test("a key is revoked after a question, and what was done is said", async () => {
  await using proxy = await startProxy({ config: { auth: { apiKeys: keys } } });
  const page = await (await fetch(`${proxy.url}/admin/keys`)).text();
  expect(page.match(/<summary aria-label="Revoke (?:laptop|phone)…">Revoke…<\/summary>/g)).toHaveLength(2);
  const form_token = formTokenIn(page);
  const body = new URLSearchParams({ form_token, name: "phone" });
  const done = await fetch(`${proxy.url}/admin/keys/revoke`, { method: "POST", body });
  expect(done.url).toEndWith("/admin/keys?revoked=phone");
  expect(textOf(await done.text())).toContain(
    "There is no key phone any more: it was revoked, and its next request is refused.",
  );
  expect(textOf(await (await fetch(`${proxy.url}/admin/keys?revoked=laptop`)).text())).not.toContain("any more");
});

test("a page of the history is shown by the time that it shows, whichever request ended first", async () => {
  const now = Date.now();
  const rows = [3000, 1000, 2000, 1500].map((ago, at) => ({ request_id: `row-${at}`, started_at_ms: now - ago }));
  await using own = await having(...rows);
  const page = await own.page("/requests");
  const shown = [...page.matchAll(/<th scope="row"><a href="[^"]*requests\/(row-\d)/g)].map(([, id]) => id);
  expect(shown).toEqual(["row-1", "row-3", "row-2", "row-0"]);
});

test("the cache page does not speak of later turns before there was one", async () => {
  const turn = (session: number, cached_tokens = 0) => ({
    session: `session-${session}`,
    input_tokens: 9,
    cached_tokens,
  });
  await using own = await having(...[0, 1, 2, 3, 4].map((session) => turn(session)));
  const misses = async () => /Cache misses (.*?) By model/.exec(await own.words("/cache"))?.[1];
  expect(await misses()).toBe("No conversation has had a second turn yet.");
  own.add(turn(0));
  expect(await misses()).toStartWith("None is known, and nothing was read from the cache");
  own.add(turn(0, 5));
  expect(await misses()).toStartWith("None. Every later turn");
});

test("the notes of the Connect page have code where the notes have it, and no backticks", async () => {
  await using own = await having();
  const page = await own.page("/connect");
  // PowerShell continues a line with one.
  const notes = textOf(page.replace(/<pre[\s\S]*?<\/pre>/g, ""));
  expect(notes.match(/.{20}`.{20}/g)).toBeNull();
  expect(page).toContain("<code>allowedHosts</code>");
});

test("the sign-in page does not say that this machine is another one", async () => {
  await using proxy = await startProxy({ env: { ADMIN_TOKEN: "t-admin-0123456789" }, adminAuth: "always" });
  const page = textOf(await (await fetch(`${proxy.url}/admin`)).text());
  expect(page).toContain("--admin-auth=always");
  expect(page).not.toContain("You are connecting from another machine");
});
