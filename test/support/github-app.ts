/**
 * A GitHub App and its installation in an organization, as GitHub documents them (docs.github.com, "Authenticating as a GitHub App
 * installation" and REST "GitHub Apps", API version 2022-11-28, read in November 2026): the demo answers for them.
 */
import { createVerify, generateKeyPairSync } from "node:crypto";
import { quotas } from "../../src/demo/accounts";
import type { Demo } from "../../src/demo/demo";
import type { SeenRequest } from "../../src/demo/state";

/** Shorter than GitHub's: it is made quicker. */
const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 1024 });
/** As GitHub offers it for download. */
export const appKey = privateKey.export({ type: "pkcs1", format: "pem" }) as string;

const error = (status: number, message: string) =>
  Response.json({ message, documentation_url: "https://docs.github.com/rest", status: String(status) }, { status });

interface AppFacts {
  /** What the App was granted there. */
  permissions?: Record<string, string>;
  repositories?: "all" | "selected";
  suspended?: boolean;
  /** The clock of GitHub. */
  now?: () => number;
}

export const acme = { app: "4711", installation: { id: "987654", privateKey: appKey } };

/** @returns Its state, which tests change. */
export function installApp(demo: Demo, facts: AppFacts = {}) {
  const state = {
    permissions: facts.permissions ?? { metadata: "read", organization_copilot_requests: "read" },
    repositories: facts.repositories ?? "all",
    suspended: facts.suspended ?? false,
    /** The bodies that tokens were asked for with. */
    asked: [] as unknown[],
    account: {
      login: "Acme-Corp",
      githubToken: "",
      planToken: "",
      plan: "business",
      sku: "copilot_for_business_seat_quota",
      host: "individual" as const,
      quota: quotas.tokenBilling(),
    },
  };
  const now = facts.now ?? Date.now;
  demo.accounts.push(state.account);
  const answer = (status: number, body: object) =>
    Response.json(body, { status, headers: { date: new Date(now()).toUTCString() } });
  /** As GitHub checks a JSON Web Token. */
  const isSigned = ({ headers }: SeenRequest): boolean => {
    const [head = "", claims = "", signature = ""] = (headers.authorization ?? "").replace("Bearer ", "").split(".");
    const verified = createVerify("sha256").update(`${head}.${claims}`).verify(publicKey, signature, "base64url");
    if (!verified) return false;
    const { iat, exp, iss } = JSON.parse(Buffer.from(claims, "base64url").toString());
    const seconds = now() / 1000;
    return iss === acme.app && iat <= seconds && exp > seconds && exp - iat <= 600;
  };
  const installation = `/app/installations/${acme.installation.id}`;
  const always = Number.POSITIVE_INFINITY;
  demo.intercept(
    installation,
    (seen) =>
      isSigned(seen)
        ? answer(200, {
            id: Number(acme.installation.id),
            account: { login: state.account.login, type: "Organization" },
            permissions: state.permissions,
            repository_selection: state.repositories,
            suspended_at: state.suspended ? "2026-11-01T00:00:00Z" : null,
          })
        : error(401, "A JSON web token could not be decoded"),
    always,
  );
  demo.intercept(
    `${installation}/access_tokens`,
    (seen) => {
      if (!isSigned(seen)) return error(401, "A JSON web token could not be decoded");
      const { permissions, repository_ids } = seen.body as { permissions: object; repository_ids?: number[] };
      if (Object.keys(permissions).some((name) => !(name in state.permissions)))
        return error(422, "The permissions requested are not granted to this installation.");
      if (repository_ids?.includes(404))
        return error(422, "There is at least one repository that does not exist or is not accessible.");
      state.asked.push(seen.body);
      state.account.githubToken = `ghs_DEMOacmeDEMOacmeDEMOacme${String(state.asked.length).padStart(4, "0")}`;
      const expires_at = new Date(now() + 3_600_000).toISOString();
      return answer(201, { token: state.account.githubToken, expires_at, permissions });
    },
    always,
  );
  return state;
}
