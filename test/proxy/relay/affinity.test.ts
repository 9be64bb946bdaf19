/**
 * Rows: which account a conversation goes back to: the memory of it, and streams; `fixtures/scenes/requests.txt` has who
 * serves.
 */
import { expect, test } from "bun:test";
import { startDemo } from "../../../src/demo/demo";
import { Account } from "../../../src/people/accounts/account";
import { openAffinity } from "../../../src/people/accounts/affinity";
import { handClock, hostsOf, keptLog, savedFrom } from "../../people/accounts/bench";
import { timed } from "./bench";

test("what is replayed goes to the maker that streamed it, though another account comes first in order", async () => {
  await using proxy = await timed({ accounts: ["octo-demo", "work-demo"] });
  const user = { type: "message", role: "user", content: [{ type: "input_text", text: "Think about it." }] };
  const respond = async (input: object[]) => {
    const include = ["reasoning.encrypted_content"];
    const body = { model: "gpt-5.3-codex", input, stream: true, reasoning: { effort: "high" }, include, store: false };
    const text = await (await proxy.post("/v1/responses", body)).text();
    return JSON.parse(/response\.completed\ndata: (.*)/.exec(text)![1]!).response.output as object[];
  };
  proxy.app.accounts[0]!.setState({ name: "cooling", until: proxy.now() + 20_000, reason: "For a test." });
  const made = await respond([user]);
  proxy.pass(20_000);
  await respond([user, ...made, user]);
  expect(proxy.rows().map(({ account_id }) => account_id)).toEqual(["work-demo", "work-demo"]);
  expect(JSON.parse(proxy.rows()[0]!.attempts)).toHaveLength(1);
});

test("the memory is bounded: the oldest is forgotten first, and what is learnt again counts as new", async () => {
  const demo = startDemo();
  const { logger } = keptLog();
  const [octo, work] = demo.accounts.map(
    (account) => new Account(savedFrom(account), { hosts: hostsOf(demo), version: "1", logger, ...handClock() }),
  );
  const accounts = [octo!, work!];
  const affinity = openAffinity(3);
  for (const mark of ["a", "b", "c"]) affinity.remember(mark, octo!);
  affinity.remember("a", work!);
  affinity.remember("d", work!);
  expect(["a", "b", "c", "d"].map((mark) => affinity.accountFor([mark], accounts)?.id)).toEqual([
    "work-demo",
    undefined,
    "octo-demo",
    "work-demo",
  ]);
  expect(affinity.accountFor(["unknown", "c", "d"], accounts)).toBe(octo!);
  expect(affinity.accountFor(["c"], [work!, work!])).toBeUndefined(); // signed out meanwhile
  await demo.stop();
});
