/* What every page of the site runs. Its scripts are modules; generators/site/joined_files.py makes one file of them. */

import { startEntities } from "./entities.js";
import { startFigures } from "./figures.js";
import { startGlossary } from "./glossary.js";
import { startMatrix } from "./matrix.js";
import { startKeepingPlace } from "./place.js";
import { startPrinting } from "./print.js";
import { startScheme } from "./scheme.js";
import { startTables } from "./tables.js";

startScheme(); // before what is drawn in its colours
startTables();
startPrinting();
startMatrix();
startKeepingPlace();
startFigures();
startEntities();
startGlossary();
