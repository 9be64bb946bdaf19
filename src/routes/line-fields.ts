/** The fields of a usage line's format, for `GET /usage/line` and `dragoman usage --format`. */
export const lineFields = [
  "account",
  "left",
  "remaining",
  "entitlement",
  "used",
  "percent",
  "unit",
  "state",
  "reset",
] as const;
