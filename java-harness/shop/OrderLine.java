package com.acme.shop;

/** So many pieces of one article at one price. */
final class OrderLine {
  final int article;
  final int quantity;
  final long priceCents;

  OrderLine(int article, int quantity, long priceCents) {
    this.article = article;
    this.quantity = quantity;
    this.priceCents = priceCents;
  }

  long total() {
    return quantity * priceCents;
  }
}
