/** Sign-ins that wait for a person, as GitHub begins them. */
import { randomBytes } from "node:crypto";
import type { WaitingSignIn } from "../../src/people/accounts/sign-in-store";

let count = 0;
export function waitingSignIn(more: Partial<WaitingSignIn> = {}): WaitingSignIn {
  count += 1;
  return {
    id: randomBytes(16).toString("base64url"),
    host: "github.com",
    app: "vscode",
    member: null,
    code: { userCode: `ABCD-${count}`, address: "https://github.com/login/device", mayOpen: true, expiresIn: 900 },
    expiresAt: Date.now() + 900_000,
    ...more,
  };
}
