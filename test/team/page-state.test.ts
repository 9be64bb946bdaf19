/**
 * Scenario: what the admin pages of a team keep between two requests of a browser, which may reach another server each
 * time.
 */
import { afterEach, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { openFormTokens } from "../../src/admin/access/form-token";
import type { Stores } from "../../src/books/stores";
import { readEnvironment } from "../../src/config/environment";
import { dayMs, hourMs } from "../../src/lib/format";
import { sha256 } from "../../src/lib/net/in/credentials";
import { openStores } from "../../src/parts/open-stores";
import type { NewPageSignIn } from "../../src/people/keys/page-sign-ins";
import { describeWithDatabases } from "../support/shared-postgres";

const adminToken = "an admin token";
const owner: NewPageSignIn = { member: null, secret: adminToken };
const sealKey = randomBytes(32).toString("base64");

describeWithDatabases("the page state of a team", (server) => {
  const opened: Stores[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((stores) => stores.close()));
  });

  /** A server, and others of its team. */
  async function team(more: Record<string, string> = {}) {
    const url = await server.database();
    const another = async (env: Record<string, string> = {}) => {
      const variables = { DRAGOMAN_DATABASE_URL: url, DRAGOMAN_SEAL_KEY: sealKey, ADMIN_TOKEN: adminToken, ...more };
      const environment = readEnvironment({ HOME: "/nonexistent", ...variables, ...env });
      const stores = await openStores(environment, { follow: true });
      opened.push(stores);
      return { stores, state: stores.openPageState(Date.now) };
    };
    return { url, another, ...(await another()) };
  }

  test("a form of one server is right for another with the same seal key, for a day", async () => {
    const { state, another } = await team();
    const later = (ms: number) => () => Date.now() + ms;
    const form = openFormTokens(state.formSecret, Date.now).make("m-1");
    const other = (await another()).state.formSecret;
    expect(openFormTokens(other, later(hourMs)).isRight(form, "m-1")).toBe(true);
    expect(openFormTokens(other, later(dayMs + 1_000)).isRight(form, "m-1")).toBe(false);
  });

  test("who has the database and no seal key can begin no sign-in", async () => {
    const { state, url } = await team();
    const foreign = await team({ DRAGOMAN_SEAL_KEY: randomBytes(32).toString("base64") });
    const forged = foreign.state.signIns.begin(owner);
    expect(await state.signIns.find(forged)).toBeUndefined();
    const digest = sha256(forged).toString("hex");
    await server.administer(`INSERT INTO dragoman.ended_page_sign_ins VALUES ('\\x${digest}', 0)`, url);
    expect(await state.signIns.find(forged)).toBeUndefined();
  });

  test("the value of a cookie is not in the tables", async () => {
    const { state, url } = await team();
    const id = state.signIns.begin(owner);
    await state.signIns.end(id);
    const rows = (await server.administer("SELECT e::text AS row FROM dragoman.ended_page_sign_ins e", url)) as {
      row: string;
    }[];
    expect(rows).toHaveLength(1);
    for (const secret of [id, adminToken])
      for (const written of [secret, Buffer.from(secret).toString("hex")]) expect(rows[0]!.row).not.toContain(written);
  });

  test("a form's token is right for the person whose page it was on, and for nobody else", async () => {
    const { state } = await team();
    const tokens = openFormTokens(state.formSecret, Date.now);
    const [owners, annas] = [tokens.make(null), tokens.make("anna")];
    expect([tokens.isRight(owners, null), tokens.isRight(annas, "anna")]).toEqual([true, true]);
    expect([tokens.isRight(owners, "anna"), tokens.isRight(annas, null), tokens.isRight(annas, "ben")]).toEqual([
      false,
      false,
      false,
    ]);
    const changed = owners.slice(0, -1) + (owners.endsWith("A") ? "B" : "A");
    const earlier = `${(Date.now() - 60_000).toString(36)}${owners.slice(owners.indexOf("-"))}`;
    for (const wrong of [null, "", "x", changed, earlier, owners.replace("-", ""), `${owners}x`])
      expect([wrong, tokens.isRight(wrong, null)]).toEqual([wrong, false]);
  });
});
