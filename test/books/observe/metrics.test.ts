/**
 * Scenario: `GET /metrics`: its form, who reads it, and what Prometheus makes of it; `fixtures/books/history.txt` has what is
 * counted.
 */
import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { prometheusText } from "../../../src/books/observe/prometheus";
import { openCounter, openHistogram } from "../../../src/books/observe/series";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { run } from "../../support/command";
import { entry } from "../../support/history-rows";
import { postJson } from "../../support/post-json";
import { startProxy } from "../../support/proxy";
import { readSamples, valueIn } from "../../support/samples";
import { testWith } from "../../support/sandbox";
import { until } from "../../support/until";

const chat = (content: string, stream = false) => ({
  model: "gpt-5-mini",
  stream,
  messages: [{ role: "user", content }],
});

const scrape = async (url: string, init?: RequestInit) => {
  const response = await fetch(`${url}/metrics`, init);
  expect(response.status).toBe(200);
  return readSamples(await response.text());
};

test("a metric is written as Prometheus reads it, whatever stands in its words", () => {
  const labels = { model: 'a "b" \\ c\nd' };
  const names = { name: "sizes", help: 'A "size" \\ of\nall.' };
  const counted = { counts: [1, 2, 3], count: 6, sum: 7.5 };
  expect(
    prometheusText([
      { ...names, kind: "histogram", bounds: [1, 2.5], points: [{ labels, value: counted }] },
      { name: "up", kind: "gauge", help: "Up.", points: [{ labels: {}, value: Number.POSITIVE_INFINITY }] },
      { name: "none_total", kind: "counter", help: "None.", points: [] },
    ]),
  ).toBe(String.raw`# HELP sizes A "size" \\ of\nall.
# TYPE sizes histogram
sizes_bucket{model="a \"b\" \\ c\nd",le="1"} 1
sizes_bucket{model="a \"b\" \\ c\nd",le="2.5"} 3
sizes_bucket{model="a \"b\" \\ c\nd",le="+Inf"} 6
sizes_sum{model="a \"b\" \\ c\nd"} 7.5
sizes_count{model="a \"b\" \\ c\nd"} 6
# HELP up Up.
# TYPE up gauge
up +Inf
# HELP none_total None.
# TYPE none_total counter
`);
});

const counted = await startProxy({ config: { auth: { apiKeys: [{ name: "anna", key: "key-of-anna-12345" }] } } });
for (const body of [chat("Hello"), chat("Hello", true), { ...chat("Hello"), model: "no-such-model" }, chat("Hello")])
  await (await counted.post("/v1/chat/completions", body, { headers: { "x-api-key": "key-of-anna-12345" } })).text();
afterAll(() => counted[Symbol.asyncDispose]());

test("times are histograms whose last bucket is the count", async () => {
  const samples = await scrape(counted.url);
  for (const name of ["dragoman_request_duration_seconds", "dragoman_time_to_first_byte_seconds"]) {
    const count = valueIn(samples, `${name}_count`);
    expect(count).toBe(name.includes("first_byte") ? 3 : 4);
    expect(valueIn(samples, `${name}_bucket`, { le: "+Inf" })).toBe(count);
    expect(valueIn(samples, `${name}_bucket`, { le: "327.68" })).toBe(count);
    const seconds = counted.rows().reduce((sum, row) => sum + row.duration_ms / 1000, 0);
    if (name.includes("duration")) expect(valueIn(samples, `${name}_sum`)).toBeCloseTo(seconds, 6);
  }
  // Beyond the last bound.
  counted.app.exchangeMetrics.count(entry({ duration_ms: 400_000 }), []);
  const last = (all: typeof samples) =>
    ["327.68", "+Inf"].map((le) => valueIn(all, "dragoman_request_duration_seconds_bucket", { le }));
  const [below, all] = last(samples);
  expect(last(await scrape(counted.url))).toEqual([below!, all! + 1]);
});

test("the process and its build are told among the metrics", async () => {
  const samples = await scrape(counted.url);
  expect(valueIn(samples, "dragoman_build_info", { version: "0.0.0-test" })).toBe(1);
  expect(valueIn(samples, "process_resident_memory_bytes")).toBeGreaterThan(1e7);
  expect(valueIn(samples, "process_cpu_seconds_total")).toBeGreaterThan(0);
  expect(valueIn(samples, "process_start_time_seconds")).toBeLessThan(Date.now() / 1000);
});

test("the metrics have no series twice, no prompt and no secret", async () => {
  const text = await (await fetch(`${counted.url}/metrics`)).text();
  const samples = readSamples(text).map(({ name, labels }) => `${name} ${JSON.stringify(labels)}`);
  expect(new Set(samples).size).toBe(samples.length);
  for (const secret of ["key-of-anna", "Hello", "no-such-model"]) expect(text).not.toContain(secret);
});

test("open requests and streams are counted while they run", async () => {
  await using proxy = await startProxy();
  const stream = await proxy.post("/v1/chat/completions", chat("[demo: silence 20] Hello", true));
  const full = proxy.post("/v1/chat/completions", chat("[demo: slow-headers 20] Hello")).catch(() => undefined);
  await until(() => proxy.app.inFlight.count === 2, "both requests run");
  const samples = await scrape(proxy.url);
  expect(valueIn(samples, "dragoman_requests_open")).toBe(2);
  expect(valueIn(samples, "dragoman_streams_open")).toBe(1);
  await stream.body?.cancel();
  void full;
});

test("a metric that cannot be read is named, and the others are read", async () => {
  await using proxy = await startProxy();
  proxy.app.budgets.overview = () => {
    throw new Error("locked");
  };
  const samples = await scrape(proxy.url);
  expect(valueIn(samples, "dragoman_metrics_unreadable", { metric: "dragoman_budget_spent_ratio" })).toBe(1);
  expect(valueIn(samples, "dragoman_build_info")).toBe(1);
});

test("requests that nothing could keep are counted, and said on the page Health", async () => {
  await using proxy = await startProxy({});
  using locker = new Database(join(proxy.home, "admin.sqlite"));
  locker.run("BEGIN IMMEDIATE");
  for (let count = 0; count < 10_007; count += 1) proxy.history.add(entry({ request_id: `lost-${count}` }));
  proxy.history.flush();
  const said = async () => (await fetch(`${proxy.url}/admin/health`)).text();
  expect(await said()).toContain(
    "Check that the disk is not full. 7 requests since the start are missing in the history.",
  );
  locker.run("ROLLBACK");
  proxy.history.flush();
  expect(await said()).toContain("7 requests since the start are missing in the history.");
  const samples = readSamples(await (await fetch(`${proxy.url}/metrics`)).text());
  expect(valueIn(samples, "dragoman_rows_lost_total", { kind: "requests" })).toBe(7);
  expect(valueIn(samples, "dragoman_rows_lost_total", { kind: "settlements" })).toBe(0);
});

test("a client that invents names does not make it grow without end", () => {
  const counter = openCounter(["model"]);
  for (let at = 0; at < 5000; at++) counter.add([`model-${at}`], 1);
  const all = new Map(Array.from(counter.all(), ([[model], value]) => [model, value]));
  expect(all.size).toBe(1001);
  expect(all.get("other")).toBe(4000);
});

test("a value on a bound belongs to its bucket", () => {
  const histogram = openHistogram([], [1, 2]);
  for (const value of [0.5, 1, 1.5, 2, 2.5]) histogram.observe([], value);
  expect([...histogram.all()]).toEqual([[[], { counts: [2, 2, 1], count: 5, sum: 7.5 }]]);
});

testWith("prometheus", "promtool finds nothing wrong, and a Prometheus server takes it", async () => {
  await using command = run(["start", "--demo", "--json", "--port", "0"]);
  const { url, port } = await command.ready();
  const ask = (content: string) =>
    postJson(`${url}/v1/chat/completions`, { ...chat(content, true), model: exampleModels.flash });
  for (const content of ["Hello", "[demo: cut 3] Hello", "[demo: 429 1] Hello"]) await (await ask(content)).text();

  const lint = Bun.spawnSync(["promtool", "check", "metrics"], {
    stdin: Buffer.from(await (await fetch(`${url}/metrics`)).arrayBuffer()),
  });
  expect(`${lint.stdout}${lint.stderr}`).toBe("");
  expect(lint.exitCode).toBe(0);

  const file = join(command.home, "prometheus.yml");
  const target = { job_name: "dragoman", static_configs: [{ targets: [`127.0.0.1:${port}`] }] };
  writeFileSync(file, JSON.stringify({ global: { scrape_interval: "1s" }, scrape_configs: [target] }));
  const own = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const address = `127.0.0.1:${own.port}`;
  await own.stop(true);
  const server = Bun.spawn(
    ["prometheus", `--config.file=${file}`, `--storage.tsdb.path=${join(command.home, "tsdb")}`].concat(
      `--web.listen-address=${address}`,
    ),
    { stdout: "ignore", stderr: "ignore" },
  );
  try {
    const query = async (text: string): Promise<string | undefined> => {
      const response = await fetch(`http://${address}/api/v1/query?query=${encodeURIComponent(text)}`).catch(
        () => null,
      );
      if (!response?.ok) return undefined;
      const { data } = (await response.json()) as { data: { result: { value: [number, string] }[] } };
      return data.result[0]?.value[1];
    };
    await until(
      async () => (await query('sum(dragoman_requests_total{job="dragoman"})')) !== undefined,
      "Prometheus has a value",
    );
    expect(await query("sum(dragoman_requests_total)")).toBe("3");
    expect(await query('sum(dragoman_requests_total{status_class="cut"})')).toBe("1");
    expect(await query("up")).toBe("1");
    expect(
      await query("histogram_quantile(0.99, sum by (le) (dragoman_request_duration_seconds_bucket))"),
    ).toBeString();
  } finally {
    server.kill();
    await server.exited;
  }
});
