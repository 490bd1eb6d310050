// Starts the page: on the data inside it, or else by asking the server it came from.

import "./theme/page.css";
import { embeddedData } from "./api/embedded/data";
import { EmbeddedClient } from "./api/embedded/client";
import { HttpClient } from "./api/http";
import { App } from "./shell/app";

const root = document.getElementById("page");
if (root) {
  const data = embeddedData(document);
  void new App(root, data ? new EmbeddedClient(data) : new HttpClient()).start();
}
