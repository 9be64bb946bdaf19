/** Pairs: `fixtures/books/pages.txt`, what a person changes by the forms of the pages, and `fixtures/scenes/shown.txt`, what pages say. */
import { testBooks } from "../support/books";
import { testScenes } from "../support/scenes";

testBooks("pages");
testScenes("shown");
