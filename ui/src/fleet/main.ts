// Starts the fleet page.

import "./page.css";
import { FleetPage } from "./page";

const root = document.getElementById("page");
if (root) void new FleetPage(root).start();
