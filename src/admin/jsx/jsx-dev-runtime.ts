export * from "./jsx-runtime";
