/** What a person reads when the server is up: where it is, whose quota it spends, how to try it. At most twenty lines. */
import { homedir } from "node:os";
import type { App } from "../app";

export function welcome(app: App, url: string): string[] {
  return [
    app.demo
      ? `dragoman ${app.version} · DEMO: a scripted upstream answers, no account is used, nothing leaves this machine`
      : `dragoman ${app.version}`,
    "",
    `  Address   ${url}`,
    `  Accounts  ${accountsLine(app)}`,
    `  Access    ${accessLine(app)}`,
    `  Admin     ${url}/admin`,
    `  Data      ${app.environment.home.replace(homedir(), "~")}`,
    "",
    "Try it:",
    ...curlFor(url, app),
    "",
  ];
}

function accountsLine({ accounts }: App): string {
  if (accounts.length === 0)
    return "none yet: requests are answered with 503 until one is there. Sign in with `dragoman auth`";
  return accounts.map(({ id, temporary }) => (temporary ? "a temporary one, for this run" : id)).join(", ");
}

function accessLine({ clientKeys }: App): string {
  if (clientKeys.length === 0) return "no client key needed: any program on this machine, no web page";
  return `${clientKeys.length === 1 ? "a client key is" : "one of your client keys is"} needed`;
}

function curlFor(url: string, app: App): string[] {
  const model = app.demo ? "claude-sonnet-4.6" : "gpt-5-mini";
  const key = app.clientKeys.length > 0 ? " -H 'x-api-key: <your key>'" : "";
  const body = JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "Hello! Who are you?" }] });
  return [`  curl -N ${url}/v1/chat/completions -H 'content-type: application/json'${key} \\`, `    -d '${body}'`];
}
