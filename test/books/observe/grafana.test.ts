/** Scenario: the dashboard for Grafana asks for metrics and labels that there are. */
import { expect, test } from "bun:test";
import dashboard from "../../../src/books/observe/grafana.json";
import { startProxy } from "../../support/proxy";

const expressions = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

test("each panel asks for a metric that dragoman has, by labels that the metric has", async () => {
  await using proxy = await startProxy();
  await proxy.post("/v1/chat/completions", {
    model: "claude-sonnet-4.6",
    messages: [{ role: "user", content: "Hello" }],
  });
  await proxy.post("/v1/chat/completions", { model: "no-such-model", messages: [] });
  const text = await (await fetch(`${proxy.url}/metrics`)).text();
  const known = new Map<string, string[]>();
  for (const [, name] of text.matchAll(/^# TYPE (\S+)/gm)) known.set(name!, []);
  for (const [, name, labels] of text.matchAll(/^(\w+)\{([^}]*)\}/gm)) {
    const base = name!.replace(/_(?:bucket|sum|count)$/, "");
    const names = [...labels!.matchAll(/(\w+)="/g)].map(([, label]) => label!);
    known.set(known.has(name!) ? name! : base, names);
  }
  // Those that a server has only with a database, a budget or a failure.
  const more: Record<string, string[]> = {
    dragoman_budget_spent_ratio: ["budget", "per"],
    dragoman_upstream_errors_total: ["code"],
    dragoman_upstream_missing: ["where", "member"],
    dragoman_rows_waiting: ["kind"],
    dragoman_quota_remaining_ratio: ["account", "unit"],
  };
  expect(expressions.length).toBeGreaterThan(15);
  for (const expression of expressions)
    for (const [metric] of expression.matchAll(/(?:dragoman|process)_\w+/g)) {
      const name = metric.replace(/_bucket$/, "");
      expect([expression, known.has(name)]).toEqual([expression, true]);
      const asked = [...expression.matchAll(/by \(([^)]*)\)/g), ...expression.matchAll(/\{(\w+)=~/g)].flatMap(
        ([, list]) => list!.split(", ").filter((label) => !["le", "job"].includes(label)),
      );
      const labels = more[name] ?? known.get(name)!;
      expect([expression, asked.filter((label) => !labels.includes(label))]).toEqual([expression, []]);
    }
});
