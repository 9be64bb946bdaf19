/** Scenario: what the owner's routes saved; `fixtures/scenes/bodies.txt` has which model serves. */
import { expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { startProxy } from "../../support/proxy";

const { claude, haiku, small } = exampleModels;

test("what routes saved is the price of the model that the client asked for, less what was paid", async () => {
  const [account] = demoAccounts();
  await using proxy = await startProxy({
    demo: { accounts: [{ ...account!, quota: quotas.credits() }], generation: "C" },
    config: { routes: { "subagent:Explore": haiku, subagent: small } },
  });
  // The lists are there from the start on.
  const models = await proxy.app.catalogue.models();
  for (const type of ["Explore", "Plan", "Plan"]) {
    const headers = { "x-claude-code-request-class": "subagent", "x-claude-code-agent-type": type };
    const body = { model: claude, max_tokens: 50, messages: [{ role: "user", content: "Look." }] };
    expect((await proxy.post("/v1/messages", body, { headers })).status).toBe(200);
  }
  const explored = proxy.rows().at(-1)!;
  const { routes: saved } = (await (await fetch(`${proxy.url}/api/admin/advice`)).json()) as {
    routes: { route: string; request_count: number; saved_nano_credits: number }[];
  };
  expect(Object.fromEntries(saved.map(({ route, request_count }) => [route, request_count]))).toEqual({
    "subagent:Explore": 1,
    subagent: 2,
  });
  const { tokens } = models.find(({ id }) => id === claude)!.price;
  const asked =
    ((explored.input_tokens! * tokens!.input + explored.output_tokens! * tokens!.output) * 1e9) / tokens!.per;
  const ofExplored = saved.find(({ route }) => route === explored.route)!;
  expect(ofExplored.saved_nano_credits).toBeCloseTo(asked - explored.cost!, -2);
  expect(await (await fetch(`${proxy.url}/admin`)).text()).toContain("Change or remove it");
});
