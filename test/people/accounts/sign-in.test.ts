/** Scenario: the sign-in at GitHub by a code. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type Demo, startDemo } from "../../../src/demo/demo";
import { fetchLogin } from "../../../src/people/accounts/github";
import { hostsFor, signInApp, signInApps } from "../../../src/people/accounts/hosts";
import { type ShownCode, type SignInSteps, signIn } from "../../../src/people/accounts/sign-in";
import { startProxy } from "../../support/proxy";
import { failureOf } from "../../support/refusal";
import { until } from "../../support/until";
import { callsTo, handClock, hostsOf } from "./bench";

const pollPath = "/login/oauth/access_token";

let clock: ReturnType<typeof handClock>;
let demo: Demo;
beforeEach(() => {
  clock = handClock();
  demo = startDemo({ pace: 0, now: clock.now });
});
afterEach(() => demo.stop());

/** A sign-in whose waiting takes no time: the demo's clock moves on instead. */
function begin(changes: Partial<SignInSteps> = {}) {
  const shown: ShownCode[] = [];
  const pauses: number[] = [];
  const result = signIn({
    app: signInApps.vscode,
    hosts: hostsOf(demo),
    version: "1.2.3",
    show: (code) => void shown.push(code),
    sleep: async (milliseconds) => {
      pauses.push(milliseconds / 1000);
      clock.pass(milliseconds);
    },
    ...changes,
  });
  return { result, shown, pauses };
}

describe("signing in by code", () => {
  test("the code is shown, and the token comes when the person has approved it", async () => {
    demo.device.pending = 3;
    const { result, shown, pauses } = begin();
    expect(await result).toBe(demo.accounts[0]!.githubToken);
    expect(shown).toEqual([
      { userCode: "DEMO-0001", address: `${demo.url}/login/device`, mayOpen: true, expiresIn: 900 },
    ]);
    expect(pauses).toEqual([6, 6, 6, 6]); // never earlier than GitHub wants
    const caller = { hosts: hostsOf(demo), version: "1.2.3" };
    expect(await fetchLogin(caller, await result, "exchange")).toBe("octo-demo");
  });

  test("GitHub is told which app asks, and that dragoman does", async () => {
    await begin({ app: signInApps.opencode }).result;
    const [first] = demo.journal;
    expect(first!.body).toEqual({ client_id: "Ov23li8tweQw6odWQebz", scope: "read:user" });
    expect(first!.headers).toMatchObject({ "user-agent": "dragoman/1.2.3", accept: "application/json" });
  });

  const strange = () => Response.json({ error: "strange", error_description: "Something new." });
  // biome-ignore format: a table is read by its rows
  test.each<[what: string, prepare: () => unknown, said: string, changes: Partial<SignInSteps>]>([
    ["was declined in the browser", () => Object.assign(demo.device, { outcome: "access_denied" }), "The sign-in was declined in the browser; nothing was saved.", {}],
    ["has a code that expired", () => Object.assign(demo.device, { outcome: "expired_token" }), "The code expired before it was approved. Run `dragoman auth` for a new one.", {}],
    ["GitHub ends for a reason nobody foresaw", () => demo.intercept(pollPath, strange), "GitHub ended the sign-in (strange: Something new.).", {}],
    ["is of an unknown app", () => {}, "GitHub does not let the app my-own-app sign in by code (Not Found).", { app: signInApp("my-own-app") }],
    ["has no network", () => {}, "GitHub refused the connection.", { hosts: hostsFor("github.com", { githubUrl: "http://127.0.0.1:9" }) }],
  ])("a sign-in that %s ends with a sentence that says so", async (_, prepare, said, changes) => {
    prepare();
    expect((await failureOf(begin(changes).result)).message).toBe(said);
  });

  test("nobody ever answers: the end comes with the code's own", async () => {
    demo.device.pending = 1_000_000;
    const { result, pauses } = begin();
    expect((await failureOf(result)).details.code).toBe("expired_token");
    expect(pauses.reduce((sum, pause) => sum + pause)).toBeWithin(890, 910);
  });

  test("slow_down with a new interval, and without one", async () => {
    demo.intercept(pollPath, () => Response.json({ error: "slow_down", interval: 12 }));
    demo.intercept(pollPath, () => Response.json({ error: "slow_down" }));
    const { result, pauses } = begin();
    await result;
    expect(pauses).toEqual([6, 13, 18, 18]);
  });

  test.each([
    [0, 6],
    [-1, 6],
    [1e9, 60],
    ["soon", 6],
  ])("an interval of %p means a poll every %d s", async (interval, pause) => {
    demo.intercept("/login/device/code", () =>
      Response.json({
        device_code: "d",
        user_code: "ABCD-1234",
        verification_uri: `${demo.url}/login/device`,
        expires_in: 300,
        interval,
      }),
    );
    demo.intercept(pollPath, () => Response.json({ error: "authorization_pending" }), 100);
    const { result, pauses } = begin();
    await failureOf(result);
    expect(new Set(pauses)).toEqual(new Set([pause]));
    expect(pauses.length).toBe(300 / pause);
  });

  test.each(["https://evil.example/login/device", "javascript:alert(1)", "github.com/login/device"])(
    "the address %s is shown with a warning and not to be opened",
    async (verification_uri) => {
      demo.intercept("/login/device/code", () =>
        Response.json({ device_code: "d", user_code: "ABCD-1234", verification_uri, expires_in: 60 }),
      );
      const { result, shown } = begin();
      await failureOf(result);
      expect(shown).toMatchObject([
        { address: verification_uri, mayOpen: false, warning: expect.stringContaining("Do not open it") },
      ]);
    },
  );

  test("a code that would write over the terminal is not shown", async () => {
    demo.intercept("/login/device/code", () =>
      Response.json({ device_code: "d", user_code: "\u001b[2J", verification_uri: `${demo.url}/x` }),
    );
    const { result, shown } = begin();
    expect((await failureOf(result)).message).toContain("has no sign-in code");
    expect(shown).toEqual([]);
  });

  test("polls that GitHub cannot answer are asked again", async () => {
    demo.intercept(pollPath, () => new Response("<html>502</html>", { status: 502 }));
    demo.intercept(pollPath, () => new Response("", { status: 200 }));
    demo.intercept(pollPath, () => Response.redirect("https://portal.example/login", 302));
    demo.intercept(pollPath, () => new Promise(() => {}));
    expect(await begin({ timeoutMs: 100 }).result).toBe(demo.accounts[0]!.githubToken);
    expect(callsTo(demo, pollPath)).toBe(6);
  });

  test("pending polls are pending with status 400 too, and a 4xx that says nothing ends the sign-in", async () => {
    demo.intercept(pollPath, () => Response.json({ error: "authorization_pending" }, { status: 400 }));
    demo.intercept(pollPath, () => new Response("go away", { status: 418 }));
    const { result, pauses } = begin();
    expect((await failureOf(result)).message).toBe("GitHub ended the sign-in (status 418).");
    expect(pauses.length).toBe(2);
  });

  test("Ctrl-C ends the waiting at once", async () => {
    demo.device.interval = 60;
    const leaving = new AbortController();
    const { result, shown } = begin({ signal: leaving.signal, sleep: undefined });
    await until(() => shown.length > 0, "the code is shown");
    leaving.abort();
    const error = await result.catch((thrown) => thrown);
    expect(error.name).toBe("AbortError");
    expect(callsTo(demo, pollPath)).toBe(0);
  });

  test("a token that is not accepted is nobody's", async () => {
    const error = await failureOf(fetchLogin({ hosts: hostsOf(demo), version: "1" }, "ghu_gone", "exchange"));
    expect([error.kind, error.details.code]).toEqual(["no_account", "sign_in_revoked"]);
  });
});

test("a member begins twenty sign-ins within a while, those that have ended too; the owner may begin others", async () => {
  await using proxy = await startProxy({ clock });
  const { signIns } = proxy.app;
  const begin = (member?: string) => signIns.begin({ host: undefined, app: signInApps.vscode, member });
  const beginAndCancel = async (times: number, member?: string) => {
    for (let count = 0; count < times; count += 1) await signIns.cancel((await begin(member)).id);
  };
  await beginAndCancel(19, "m-1");
  expect((await begin("m-1")).state).toEqual({ name: "waiting" });
  expect(await failureOf(begin("m-1"))).toMatchObject({
    kind: "rate_limit",
    message: "20 of your sign-ins have begun a short while ago. Try again in ten minutes.",
    details: { headers: { "retry-after": "600" } },
  });
  expect((await begin("m-2")).member).toBe("m-2");
  await beginAndCancel(21);
});
