/** What README says of the clients holds without running them: the files can be read, the numbers are the catalogue's. */
import { expect, test } from "bun:test";
import { startProxy } from "../support/proxy";
import { codex, models, opencode, task } from "./clients";

const place = { url: "http://127.0.0.1:4141", key: "a-client-key" };

test("the limits are those of the model list", async () => {
  await using proxy = await startProxy();
  const { data } = (await (await fetch(`${proxy.url}/v1/models`)).json()) as { data: Record<string, unknown>[] };
  const { text } = opencode().setup(place, models.claude, task).file!;
  const listed = JSON.parse(text).provider.dragoman.models as Record<string, { limit: object }>;
  for (const [id, { limit }] of Object.entries(listed)) {
    const known = data.find((model) => model.id === id)!;
    expect([id, limit]).toEqual([
      id,
      { context: known.max_context_window_tokens, input: known.max_prompt_tokens, output: known.max_output_tokens },
    ]);
  }
  expect(Object.keys(listed)).toEqual(expect.arrayContaining(Object.values(models).map(({ id }) => id)));
});

test("Codex's file is TOML, with and without a client key", () => {
  for (const key of [undefined, place.key]) {
    const { env, file } = codex.setup({ ...place, key }, models.gpt, task);
    const { model_providers } = Bun.TOML.parse(file!.text) as {
      model_providers: Record<string, Record<string, string>>;
    };
    const { base_url, env_key } = model_providers.dragoman!;
    expect(base_url).toBe("http://127.0.0.1:4141/v1");
    expect(env_key && env[env_key]).toBe(key);
  }
});
