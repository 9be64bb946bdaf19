/**
 * Scenario: what src/clients/README.md says of the clients holds without running them: the example's models are the
 * catalogue's.
 */
import { expect, test } from "bun:test";
import { clientSettings, models } from "../../src/deploy/documents/client-settings";
import { startProxy } from "../support/proxy";

test("the example's models, limits and dialects are those of the model list", async () => {
  await using proxy = await startProxy({ demo: { generation: "C" } });
  const { data } = (await (await fetch(`${proxy.url}/v1/models`)).json()) as { data: Record<string, unknown>[] };
  for (const { id, name, endpoints, premium, context, prompt, output } of Object.values(models)) {
    const known = data.find((model) => model.id === id)!;
    expect(known).toMatchObject({
      display_name: name,
      premium,
      max_context_window_tokens: context,
      max_prompt_tokens: prompt,
      max_output_tokens: output,
    });
    expect(endpoints.toSorted()).toEqual((known.upstream_endpoints as string[]).toSorted());
  }
});

test("every client has a section that begins with the one command", () => {
  const sections = clientSettings().split(/^### /m).slice(1);
  expect(sections.length).toBeGreaterThan(9);
  for (const section of sections) expect(section).toMatch(/^.+\n\n```sh\ndragoman connect [a-z-]+/);
  expect(clientSettings()).toContain(`"input": ${models.claude.prompt}`);
});
