/** Before what a tool said whose call is not in the conversation, for example in a shortened history: it is sent as text. */
export const lostResultHeading = (id: unknown): string => `Result of the earlier tool call ${id}:`;
