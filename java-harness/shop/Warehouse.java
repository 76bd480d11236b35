package com.acme.shop;

/** Stock in an int array, and two counters written by different threads. */
final class Warehouse {
  final int[] stock;
  long picked;
  long counted;

  Warehouse(int articles, int pieces) {
    stock = new int[articles];
    for (int i = 0; i < articles; i++) {
      stock[i] = pieces;
    }
  }

  synchronized void pick(OrderLine line) {
    stock[line.article] -= line.quantity;
    picked += line.quantity;
  }

  synchronized long count() {
    long pieces = 0;
    for (int inStock : stock) {
      pieces += inStock;
    }
    counted++;
    return pieces;
  }
}
