package com.acme.clicks;

interface Names {
    String CLICKS = "clicks";
    String ROBOTS = "robots";
    String COUNTS = "counts";
    String PAGE = "page";
    String USER = "user";
}
