/** An answer of server-sent events, written as text. */
export function eventStream(body: ConstructorParameters<typeof Response>[0]): Response {
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

/** An event that has the name of its type, as Responses and Messages write it. */
export function namedEvent(event: { type?: string; [member: string]: unknown }): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** An event of a chat stream, with this choice. */
export function chatChunk(choice: object): string {
  const chunk = { id: "c", object: "chat.completion.chunk", created: 1, model: "gpt-5-mini" };
  return `data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, ...choice }] })}\n\n`;
}

/** The objects that the events of a stream hold, in their order; without `[DONE]`. */
// biome-ignore lint/suspicious/noExplicitAny: each test knows what its events have.
export function eventsIn(text: string): any[] {
  return [...text.matchAll(/^data: (\{[^\n]*)$/gm)].map(([, data]) => JSON.parse(data!));
}
