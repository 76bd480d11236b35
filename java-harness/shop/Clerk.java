package com.acme.shop;

/** Places a number of orders, in a thread of its own. */
final class Clerk implements Runnable {
  private final Shop shop;
  private final int firstOrder;
  private final int count;

  Clerk(Shop shop, int firstOrder, int count) {
    this.shop = shop;
    this.firstOrder = firstOrder;
    this.count = count;
  }

  @Override
  public void run() {
    for (int id = firstOrder; id < firstOrder + count; id++) {
      Order order = shop.makeOrder(id);
      order.computeTotal();
      shop.keep(order);
    }
  }
}
