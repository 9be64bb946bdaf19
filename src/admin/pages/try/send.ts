/** Sends the prompt of the page Try through the relay, as a client of its dialect would. Only the row of the request is kept. */
import { codecs } from "../../../dialects/codecs";
import { asProxyError } from "../../../lib/errors";
import type { KeyedCaller } from "../../../people/keys/client-keys";
import { relay } from "../../../proxy/relay/relay";
import type { PageContext } from "../../ui/page-context";
import { keyOfVisitor } from "../visitor-key";
import { readPrompt, requestOf } from "./prompt";

/** The name of the client in the history. */
const tryClient = "dragoman-try";

/** The answer as a client gets it: the stream of the dialect, or its error. */
export async function sendFromPage(context: PageContext): Promise<Response> {
  const { app, form, request, url } = context;
  const caller: KeyedCaller = Object.assign(context.caller, { key: keyOfVisitor(context) });
  const prompt = readPrompt(form);
  const { path, headers, body, inAddress } = requestOf(prompt);
  const asked = new Request(url.origin + path, {
    method: "POST",
    headers: { ...headers, "user-agent": tryClient },
    body,
    signal: request.signal,
  });
  try {
    return await relay(app, asked, caller, prompt.dialect, inAddress);
  } catch (thrown) {
    const error = asProxyError(thrown);
    const { headers: more, ...rest } = { headers: error.details.headers ?? {}, status: error.status };
    return Response.json(codecs[prompt.dialect].encodeError(error, caller.requestId), { ...rest, headers: more });
  }
}
