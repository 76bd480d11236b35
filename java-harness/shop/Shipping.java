package com.acme.shop;

/** Ships every order the shop has, in a thread of its own. */
final class Shipping implements Runnable {
  private final Shop shop;
  private final Warehouse warehouse;

  Shipping(Shop shop, Warehouse warehouse) {
    this.shop = shop;
    this.warehouse = warehouse;
  }

  @Override
  public void run() {
    for (Order order : shop.orders()) {
      for (OrderLine line : order.lines) {
        warehouse.pick(line);
      }
      order.shipped = true;
    }
  }
}
