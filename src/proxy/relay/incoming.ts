/** The client's request as it was read: its body, and what routing needs to know. */

import type { RequestKind } from "../../books/history/entry";
import type { JsonObject } from "../../dialects/hub/conversation";
import { type Outline, overviewOf } from "../../dialects/overview";
import { ProxyError } from "../../lib/errors";
import type { HeldBytes } from "../../lib/net/in/held-bytes";
import {
  type Body,
  bodyText,
  type RequestBody,
  readBytes,
  requestBody,
  withTexts,
} from "../../lib/net/in/request-body";
import { editedTo } from "../../lib/net/json/json-edit";
import type { MarkPlace } from "../../lib/net/json/json-skeleton";
import { othersFirst } from "../../lib/net/others-first";
import { longestModelName } from "../upstream/models/model-name";
import { type Initiator, initiatorOf } from "./initiator";

export interface Incoming extends RequestBody {
  /** The model id as the client wrote it. */
  model: string;
  stream: boolean;
}

/** Members of a request that a dialect has in its address instead of its body. They are added to the body. */
export interface AddressMembers extends JsonObject {
  model: string;
}

/**
 * Bytes. Of a larger body Bun takes milliseconds to receive the last pieces, we to read it, and both to send it: events of
 * streams come in between.
 */
const longWork = 1024 * 1024;

/**
 * @param longTexts Where texts of a large body may be marks; nowhere if it is not given.
 * @throws ProxyError as {@link readBytes} and {@link requestBody}, and `invalid_request` for what names no model.
 */
export async function readIncoming(
  request: Request,
  longTexts?: MarkPlace,
  inAddress?: AddressMembers,
  held?: HeldBytes,
): Promise<Incoming> {
  const sent = await readBytes(request, undefined, held);
  if (sent.length < longWork) return incomingOf(sent, longTexts, inAddress);
  await othersFirst();
  const incoming = incomingOf(sent, longTexts, inAddress);
  await othersFirst();
  return incoming;
}

function incomingOf(sent: Uint8Array, longTexts?: MarkPlace, inAddress?: AddressMembers): Incoming {
  const read = requestBody(sent, longTexts);
  const body = inAddress ? { ...read.body, ...inAddress } : read.body;
  refuseOtherModel(body);
  if (typeof body.model !== "string" || body.model === "")
    throw new ProxyError("invalid_request", "`model` must be a model id; GET /v1/models lists them.", {
      param: "model",
    });
  if (body.model.length > longestModelName)
    throw new ProxyError(
      "invalid_request",
      `\`model\` has ${body.model.length} characters, and no model's name has more than ${longestModelName}; GET /v1/models lists them.`,
      { param: "model" },
    );
  if (body.stream != null && typeof body.stream !== "boolean")
    throw new ProxyError("invalid_request", "`stream` must be true or false.", { param: "stream" });
  const { bytes, skeleton, isMended } = read;
  return { bytes, skeleton, isMended, body, model: body.model, stream: body.stream === true };
}

/**
 * Upstreams written in Go read `Model` as `model`: it would be another model than the one that was checked and is recorded.
 * @throws ProxyError `invalid_request`
 */
function refuseOtherModel(body: JsonObject): void {
  for (const name in body)
    if (name.length === 5 && name !== "model" && name.toLowerCase() === "model")
      throw new ProxyError("invalid_request", `\`${name}\` is no field of a request: write \`model\`.`, {
        param: name,
      });
}

/** The client's JSON as it was changed; every other byte is as it was sent. */
export function editIncoming({ bytes, skeleton, body }: Incoming, changed: JsonObject): Body {
  if (!skeleton && changed === body) return bytes;
  const text = skeleton?.text ?? bodyText(bytes);
  return withTexts(changed === body ? text : editedTo(text, body, changed), skeleton);
}

/** What the upstream's headers say of a conversation; they are needed in passthrough too. */
export interface Facts extends Initiator {
  /** It contains an image, in a tool result or elsewhere. */
  vision: boolean;
}

/** @param said What the client says that the request is for. */
export function readFacts(outline: Outline, { skeleton }: Pick<Incoming, "skeleton">, said?: RequestKind): Facts {
  const overview = overviewOf(outline);
  const kind = (said === "auxiliary" && outline.auxiliaryKind?.()) || said;
  return { kind, ...initiatorOf(overview, kind, skeleton?.whole), vision: overview.image };
}
