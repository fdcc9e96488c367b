"""Scrapy as quick as it can be set: no robots.txt, no delay, no cookies, no log. It keeps no page and no record; what it decoded is
compared by length. The last line it prints is what it took, from the warm pages on until almost all are worked; or, where nothing is
timed ("tells"), the record of each page, to be compared."""

import json
import resource
import sys
import time

import scrapy
from scrapy.crawler import CrawlerProcess

options = json.loads(sys.argv[1])
marks = {}
told = {}
done = 0


def usage():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Pages(scrapy.Spider):
    name = "pages"

    def start_requests(self):
        hosts = options["hosts"]
        for number in range(options["pages"]):
            host = hosts[number % len(hosts)]
            # All names are one address, which is told apart by the header.
            yield scrapy.Request(
                f"http://127.0.0.1:{options['port']}/{number}",
                headers={"Host": f"{host}:{options['port']}"},
                dont_filter=True,
                cb_kwargs={"number": number},
            )

    def parse(self, response, number):
        global done
        lengths = options["bodyLengths"]
        if len(response.body) != lengths[number % len(lengths)]:
            raise RuntimeError(f"{response.url} has {len(response.body)} bytes")
        record = {
            "title": response.css("title::text").get(),
            "canonical": response.css("link[rel=canonical]::attr(href)").get(),
            "description": response.css("meta[name=description]::attr(content)").get(),
            "image": response.css('meta[property="og:image"]::attr(content)').get(),
            "language": response.css("html::attr(lang)").get(),
            "heading": text_of(response.css("h1")[:1]),
            "links": response.css("a[href]::attr(href)").getall(),
            "images": response.css("img[src]::attr(src)").getall(),
            "subheadings": [text_of([node]) for node in response.css("h2, h3")],
            "paragraphs": [text_of([node]) for node in response.css("p")],
        }
        if options["tells"]:
            told[number] = record
        done += 1
        if done in (options["warmPages"], options["measuredPages"]):
            marks[done] = (usage(), time.monotonic())


def text_of(nodes):
    return " ".join("".join(node.root.itertext()) for node in nodes)


process = CrawlerProcess(
    {
        "LOG_ENABLED": False,
        "ROBOTSTXT_OBEY": False,
        "COOKIES_ENABLED": False,
        "RETRY_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "CONCURRENT_REQUESTS": options["concurrency"],
        "CONCURRENT_REQUESTS_PER_DOMAIN": options["concurrency"],
        "DOWNLOAD_DELAY": 0,
        "REQUEST_FINGERPRINTER_IMPLEMENTATION": "2.7",
    }
)
process.crawl(Pages)
process.start()
if done != options["pages"]:
    sys.exit(f"{done} of {options['pages']} pages were worked")
if options["tells"]:
    print(json.dumps([told[number] for number in range(options["pages"])]))
    sys.exit()
first, last = options["warmPages"], options["measuredPages"]
print(
    json.dumps(
        {
            "pages": last - first,
            "cpuSeconds": marks[last][0] - marks[first][0],
            "seconds": marks[last][1] - marks[first][1],
        }
    )
)
