// crawlee's CheerioCrawler over one host: follows every link, stores nothing.
//   CRAWLEE=<folder of "npm install @crawlee/cheerio"> node crawlee_peer.mjs '{"start": ..., "pages": 0, "connections": 16}'
import { createRequire } from 'node:module';

const { CheerioCrawler, Configuration, log } = createRequire(`${process.env.CRAWLEE}/`)('@crawlee/cheerio');
const { start, pages, connections } = JSON.parse(process.argv[2]);

log.setLevel(log.LEVELS.WARNING);
Configuration.getGlobalConfig().set('purgeOnStart', true);
const crawler = new CheerioCrawler({
  minConcurrency: connections,
  maxConcurrency: connections,
  maxRequestsPerCrawl: pages || undefined,
  requestHandler: ({ enqueueLinks }) => enqueueLinks({ strategy: 'same-hostname' }),
});
const stats = await crawler.run([start]);
console.log(JSON.stringify(stats));
