/** Sends the prompt of the page Try through the relay, as a client of its dialect would. Only the row of the request is kept. */
import { codecs } from "../../../dialects/codecs";
import { asProxyError } from "../../../errors";
import { relay } from "../../../relay/relay";
import type { PageContext } from "../../ui/page-context";
import { readPrompt, requestOf } from "./prompt";

/** The name of the client in the history. */
export const tryClient = "dragoman-try";

/** The answer as a client gets it: the stream of the dialect, or its error. */
export async function sendFromPage({ app, form, request, caller, url }: PageContext): Promise<Response> {
  const prompt = readPrompt(form);
  const { path, headers, body, inAddress } = requestOf(prompt);
  const asked = new Request(url.origin + path, {
    method: "POST",
    headers: { ...headers, "user-agent": tryClient },
    body,
    signal: request.signal,
  });
  try {
    // The owner needs no client key here: the guard of the pages has let the request in.
    return await relay(app, asked, caller, prompt.dialect, inAddress);
  } catch (thrown) {
    const error = asProxyError(thrown);
    const { headers: more, ...rest } = { headers: error.details.headers ?? {}, status: error.status };
    return Response.json(codecs[prompt.dialect].encodeError(error, caller.requestId), { ...rest, headers: more });
  }
}
