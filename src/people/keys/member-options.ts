/** The options of the command line that set the fields of a member: without their schemas, which no command line waits for. */
export const memberOptions = {
  models: {
    name: "models",
    value: "<ids>",
    about: "The models that the member's keys may use, separated by commas; * stands for any text, alone for all",
  },
  key_days: {
    name: "expires",
    value: "<days>",
    about: "How long each key of the member lasts since it was made, such as 90d; `never` for no end",
  },
} as const;
