/** A tool that signs in by the device flow, and the browser of the member who confirms it. */
import { fieldsIn } from "./form-fields";
import type { TeamApp } from "./team-app";

interface Begun {
  device_code: string;
  user_code: string;
  verification_uri_complete: string;
  interval: number;
}

interface Tokens {
  access_token: string;
  refresh_token: string;
  expires_in: number;
  email: string;
}

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code";

export const postForm = (url: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
  fetch(url, { method: "POST", body: new URLSearchParams(fields), headers, redirect: "manual" });

/** What a tool does. */
export const toolAt = ({ url }: Pick<TeamApp, "url">) => {
  const token = async (fields: Record<string, string>) => {
    const answer = await postForm(`${url}/oauth/token`, fields);
    return { status: answer.status, ...((await answer.json()) as Tokens & { error?: string }) };
  };
  return {
    async begin(surface = "claude_code", headers?: Record<string, string>): Promise<Begun> {
      const answer = await postForm(`${url}/oauth/device_authorization`, { surface }, headers);
      return (await answer.json()) as Begun;
    },
    poll: (device_code: string) => token({ grant_type: deviceGrant, device_code }),
    refresh: (refresh_token: string) => token({ grant_type: "refresh_token", refresh_token }),
    ask: (access_token: string, model = "gpt-4.1") =>
      fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${access_token}`, "content-type": "application/json" },
        body: JSON.stringify({ model, messages: [{ role: "user", content: "hello" }] }),
      }),
  };
};

/** A browser in which the member signed in with a key. */
export async function browserOf({ url }: Pick<TeamApp, "url">, key: string) {
  const signedIn = await postForm(`${url}/admin/sign-in`, { token: key, next: "/admin" });
  const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
  const get = (path: string) => fetch(url + path, { headers: { cookie }, redirect: "manual" });
  return {
    cookie,
    get,
    /** Opens the page of a code and answers it. */
    async decide(user_code: string, decision?: "deny") {
      const page = await get(`/admin/device?user_code=${user_code}`);
      const text = await page.text();
      if (page.status !== 200) return { status: page.status, text };
      const { decision: _, ...form } = await fieldsIn(text);
      const fields = { ...form, user_code, ...(decision && { decision }) };
      const answer = await postForm(`${url}/admin/device`, fields, { cookie });
      return { status: answer.status, text, location: answer.headers.get("location") };
    },
  };
}

/** A tool that is signed in as the member. */
export async function signedInTool(server: Pick<TeamApp, "url">, key: string, surface?: string): Promise<Tokens> {
  const tool = toolAt(server);
  const { device_code, user_code } = await tool.begin(surface);
  await (await browserOf(server, key)).decide(user_code);
  return tool.poll(device_code);
}
