/** Pairs: the file of `fixtures/books/` with what a person changes by the forms of the pages, and all that comes of it. */
import { testBooks } from "../support/books";

testBooks("pages");
